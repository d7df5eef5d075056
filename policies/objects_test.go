package policies

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine"
)

// prefers is an object whose only policy is called transformationrules/<name>/apiRoutingRules[0].
func prefers(name, version string) Object {
	return Object{Name: "transformationrules/" + name, Document: fmt.Appendf(nil, `{"apiVersion":"mvp.k8s.io/v1","kind":"TransformationRules","metadata":{"name":%q},
		"spec":{"apiRoutingRules":[{"apiGroup":"apps","resource":"deployments","clientVersion":"v1","preferApiServerVersion":%q}]}}`, name, version)}
}

func openQuiet(t *testing.T, onChange func(*engine.Set), dirs ...string) *Store {
	t.Helper()
	s, err := Open(Options{Dirs: dirs}, slog.New(slog.DiscardHandler), onChange)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A set is another one when what is live of the objects is, and only then.
func TestStoreObjectsGenerations(t *testing.T) {
	told := 0
	s := openQuiet(t, func(*engine.Set) { told++ })
	f := func(generation uint64, policies int, objects ...Object) {
		t.Helper()
		s.SetObjects(objects)
		status := s.Status()
		if status.Generation != generation || status.Policies != policies || told != int(generation)-1 || len(status.Objects) != len(objects) {
			t.Errorf("generation %d of %d policies and %d objects, told %d times; want generation %d of %d", status.Generation, status.Policies, len(status.Objects), told, generation, policies)
		}
	}
	empty := s.Status().Hash
	f(1, 0)
	f(2, 1, prefers("a", "v1.32"))
	f(2, 1, prefers("a", "v1.32"))
	f(2, 1, prefers("a", "v1.32"), prefers("b", "bad"))
	f(2, 1, prefers("a", "bad"), prefers("b", "bad"))
	f(3, 2, prefers("a", "bad"), prefers("b", "v1.31"))
	f(4, 2, prefers("a", "v1.30"), prefers("b", "v1.31"))
	f(5, 0)
	if got := s.Status().Hash; got != empty {
		t.Errorf("without objects the hash is %s, before there were any %s", got, empty)
	}
	f(5, 0, prefers("a", "bad")) // what was accepted of an object goes with it
	select {
	case <-s.Changes():
	default:
		t.Error("nobody is told of a change")
	}
}

// Places in an object are its fields, and lines are those within a field.
func TestObjectPlaces(t *testing.T) {
	s := openQuiet(t, nil)
	s.SetObjects([]Object{{Name: "transformationrules/a", Document: []byte(`{"apiVersion":"mvp.k8s.io/v1","kind":"TransformationRules","metadata":{"name":"a"},"spec":{"apiMigrationRules":[
		{"apiGroup":"example.com","resource":"things","fromVersion":"v1","toVersion":"v2","match":"true &&\n  requst.name == 'é'","preserve":["spec[x"],
		 "transformations":[{"action":"mov","path":"spec.a"},{"action":"remove","path":"spec.b","extra":1}]},
		{"resource":"things"}]}}`)}})
	var got []string
	for _, e := range s.Status().Objects[0].Err {
		got = append(got, e.Pos.String())
	}
	want := []string{
		"transformationrules/a: spec.apiMigrationRules[0].match:2:3",
		"transformationrules/a: spec.apiMigrationRules[0].transformations[1].extra",
		"transformationrules/a: spec.apiMigrationRules[1]",
	}
	all := strings.Join(got, "\n")
	for _, place := range want {
		if !strings.Contains("\n"+all+"\n", "\n"+place+"\n") {
			t.Errorf("no mistake is at %q; they are at\n%s", place, all)
		}
	}
}

func TestTooManyObjects(t *testing.T) {
	s := openQuiet(t, nil)
	objects := make([]Object, maxObjects+1)
	for i := range objects {
		objects[i] = Object{Name: fmt.Sprintf("configmaps/a/%d", i)}
	}
	s.SetObjects(objects)
	status := s.Status().Objects
	if last := status[maxObjects]; last.Reason != ObjectTooMany || !strings.Contains(last.Err.Error(), "there are more than 1000 policy objects") || !status[maxObjects-1].Accepted() {
		t.Errorf("the last object is %+v, the one before %+v", last, status[maxObjects-1])
	}
	s.SetObjects(objects[1:])
	if last := s.Status().Objects[maxObjects-1]; !last.Accepted() {
		t.Errorf("with one fewer the last object is %+v", last)
	}
}

// Names of policies are apart, whatever they are called in files and objects.
func TestObjectNamesApart(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rules.yaml"), rules("a"))
	s := openQuiet(t, nil, dir)
	s.SetObjects([]Object{prefers("a", "v1.32"), {Name: "configmaps/n/a", Files: []File{
		{Name: "configmaps/n/a/rules.yaml", Data: []byte(rules("a"))}, {Name: "configmaps/n/a/notes.md", Data: []byte("notes")},
	}}})
	var got []string
	for _, info := range s.Current().Policies() {
		got = append(got, info.Name+" "+info.Origin)
	}
	want := "a/apiRoutingRules[0] file, configmaps/n/a/a/apiRoutingRules[0] object, transformationrules/a/apiRoutingRules[0] object"
	if strings.Join(got, ", ") != want {
		t.Errorf("policies are %q, want %q", got, want)
	}
}
