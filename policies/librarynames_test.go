package policies

import (
	"slices"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// loadedBy returns the parts of the library, "1.25/policy-v1beta1", that names load.
func loadedBy(t *testing.T, names ...string) []string {
	t.Helper()
	parts := loadLibrary()
	wanted, errs := selectLibrary(parts, names)
	if err := errs.Err(); err != nil {
		t.Fatal(err)
	}
	var loaded []string
	for i, part := range parts {
		if wanted[i] {
			loaded = append(loaded, part.release.String()+"/"+part.name)
		}
	}
	return loaded
}

func TestLibraryNames(t *testing.T) {
	f := func(names, want string) {
		t.Helper()
		if got := strings.Join(loadedBy(t, strings.Fields(names)...), " "); got != want {
			t.Errorf("%s loads %s\n want %s", names, got, want)
		}
	}

	f("policy-v1beta1", "1.25/policy-v1beta1")
	f("policy-v1beta1 batch-v1beta1 policy-v1beta1", "1.25/batch-v1beta1 1.25/policy-v1beta1")

	// A name stands for what each release removed of the version.
	f("storage-v1beta1", "1.22/storage-v1beta1 1.27/storage-v1beta1 1.37/storage-v1beta1")

	// What replaced a removed version may be removed, too.
	f("flowcontrol-v1beta1", "1.26/flowcontrol-v1beta1 1.29/flowcontrol-v1beta2")
	f("flowcontrol-v1beta3", "1.32/flowcontrol-v1beta3")
	f("coordination-v1alpha1", "1.32/coordination-v1alpha1 1.38/coordination-v1alpha2")
}

// A bundle has what its release and those before it removed. Of what a later one is
// going to remove it has only what conversions of its own go on with.
func TestLibraryBundles(t *testing.T) {
	parts := loadLibrary()
	for _, name := range []string{"all", "kubernetes-all", "kubernetes-1.99", "kubernetes-" + parts[len(parts)-1].release.String()} {
		if got := loadedBy(t, name); len(got) != len(parts) {
			t.Errorf("%s loads %d of the %d parts: %s", name, len(got), len(parts), got)
		}
	}
	if got := loadedBy(t, "kubernetes-1.16"); slices.ContainsFunc(got, func(part string) bool { return strings.HasPrefix(part, "1.2") }) {
		t.Errorf("kubernetes-1.16 loads %s", got)
	}
	got := loadedBy(t, "kubernetes-1.25")
	for _, part := range parts {
		name := part.release.String() + "/" + part.name
		if has := slices.Contains(got, name); part.release <= 25 && !has {
			t.Errorf("kubernetes-1.25 does not load %s", name)
		}
	}
	for _, part := range []string{"1.25/autoscaling-v2beta1", "1.22/networking-v1beta1", "1.21/flowcontrol-v1alpha1", "1.26/flowcontrol-v1beta1"} {
		if !slices.Contains(got, part) {
			t.Errorf("kubernetes-1.25 does not load %s", part)
		}
	}
	for _, part := range []string{"1.27/storage-v1beta1", "1.32/flowcontrol-v1beta3", "1.37/networking-v1beta1"} {
		if slices.Contains(got, part) {
			t.Errorf("kubernetes-1.25 loads %s", part)
		}
	}
}

func TestLibraryNamesThatAreNone(t *testing.T) {
	f := func(name, want string) {
		t.Helper()
		_, _, errs := libraryPolicies([]string{name})
		if want = "cannot load the shipped policies " + want; len(errs) != 1 || errs[0].Msg != want {
			t.Errorf("%s: %v\nwant %s", name, errs, want)
		}
	}

	f("policy-v1beta2", `"policy-v1beta2": there are none of that name; did you mean "policy-v1beta1"?`)
	f("kubernetes-v1.32", `"kubernetes-v1.32": there are none of that name; did you mean "kubernetes-1.32"?`)
	f("kubernetes-1.032", `"kubernetes-1.032": there are none of that name; did you mean "kubernetes-1.32"?`)
	f("kubernetes-1.32.1", `"kubernetes-1.32.1": a bundle is for all patch releases of a minor version; did you mean "kubernetes-1.32"?`)
	f("kubernetes-1.15", `"kubernetes-1.15": no policy is for versions that Kubernetes removed before 1.16`)
	f("everything", `"everything": there are none of that name; give kubernetes-1.N, the release of the servers, or a name that 'mvp library' lists`)
	f("", `"": there are none of that name; give kubernetes-1.N, the release of the servers, or a name that 'mvp library' lists`)
}

// Clients of flow control of any version reach servers of any release.
func TestLibraryChains(t *testing.T) {
	set, err := wholeLibrary()
	if err != nil {
		t.Fatal(err)
	}
	reach := map[string][]string{} // by the client's version
	for _, c := range set.Conversions() {
		if c.From.Resource == "prioritylevelconfigurations" {
			reach[c.From.Version] = append(reach[c.From.Version], c.To.Version)
		}
	}
	for from, want := range map[string]string{
		"v1alpha1": "v1beta1 v1beta2 v1", "v1beta1": "v1beta2 v1", "v1beta2": "v1", "v1beta3": "v1",
	} {
		if got := strings.Join(reach[from], " "); got != want {
			t.Errorf("%s is converted to %q, want %q", from, got, want)
		}
	}

	for _, c := range set.Conversions() {
		if c.From.Version != "v1alpha1" || c.From.Resource != "prioritylevelconfigurations" || c.To.Version != "v1" {
			continue
		}
		const fields = `"metadata":{"name":"n"},"spec":{"type":"Limited","limited":{"`
		got, err := c.Object(nil, []byte(object(c.From, fields+`assuredConcurrencyShares":0}}`)), convert.ToServer, nil)
		if want := object(c.To, fields+`nominalConcurrencyShares":30}}`); err != nil || !sameJSON(t, string(got), want) {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
	}
}
