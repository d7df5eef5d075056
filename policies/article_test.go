package policies

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// The document that the project began with, as a file, with every shipped policy
// beside it.
func TestArticleLoads(t *testing.T) {
	a, err := txtar.ParseFile("testdata/article.txtar")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "mvp-rules.yaml")
	if err := os.WriteFile(name, a.Files[0].Data, 0o666); err != nil {
		t.Fatal(err)
	}
	set, err := Load(Options{Dirs: []string{name}, Library: []string{"all"}})
	if err != nil {
		t.Fatal(err)
	}
	shipped := 0
	for _, s := range Library() {
		shipped += len(s.Policies)
	}
	if got := len(set.Policies()); got != 4+shipped {
		t.Errorf("%d policies, want the 4 rules and the %d shipped ones", got, shipped)
	}

	const (
		old = `{"apiVersion":"myapps.example.com/v1alpha1","kind":"CustomResource","spec":{"config":{"legacyTimeout":"30"},"stateManagement":"ephemeral"}}`
		now = `{"apiVersion":"myapps.example.com/v1beta1","kind":"CustomResource","spec":{"config":{"requestTimeoutSeconds":30},"stateManagement":"stateless"}}`
	)
	for _, c := range set.Conversions() {
		if c.From.Group != "myapps.example.com" {
			continue
		}
		got, err := c.Object(nil, []byte(old), convert.ToServer, nil)
		if err != nil || string(got) != now {
			t.Errorf("the server gets %s, %v\nwant %s", got, err, now)
		}
		return
	}
	t.Error("nothing converts myapps.example.com/v1alpha1")
}
