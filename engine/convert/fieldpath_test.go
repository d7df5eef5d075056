package convert

import "testing"

func TestFieldPath(t *testing.T) {
	spec := articleSpec()
	spec.Rules = append(spec.Rules,
		Rule{Action: Rename, Path: "spec.containers[*].img", TargetPath: "spec.containers[*].image.name"},
		Rule{Action: Rename, Path: `metadata.annotations["a.b/c"]`, TargetPath: `metadata.annotations["d.e/f"]`},
		Rule{Action: Rename, Path: "spec.first", TargetPath: "spec.second"},
		Rule{Action: Rename, Path: "spec.second", TargetPath: "spec.third"},
	)
	c := mustCompile(t, spec)
	f := func(client, server string) {
		t.Helper()
		if got := c.FieldPath(client); got != server {
			t.Errorf("FieldPath(%q) = %q, want %q", client, got, server)
		}
		if got := c.ClientFieldPath(server); got != client {
			t.Errorf("ClientFieldPath(%q) = %q, want %q", server, got, client)
		}
	}

	f("spec.config.legacyTimeout", "spec.config.requestTimeoutSeconds")
	f("spec.config.legacyTimeout.x[0]", "spec.config.requestTimeoutSeconds.x[0]")
	f("spec.containers[3].img", "spec.containers[3].image.name")
	f("spec.containers[*].img", "spec.containers[*].image.name")
	f("metadata.annotations[a.b/c]", "metadata.annotations[d.e/f]")
	f("spec.first", "spec.third")

	// Nothing to do with a rule, or no path at all.
	for _, path := range []string{"", "metadata.name", "spec", "spec.config", "spec.containers[x].img", "a..b", "a]", "a[", "[", "spec.config.legacyTimeout2"} {
		f(path, path)
	}
}
