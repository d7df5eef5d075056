package discovery

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func source(t testing.TB, server, version, text string) Source {
	t.Helper()
	return Source{Server: server, Version: version, Reachable: true, Groups: groups(t, text)}
}

func away(s Source) Source {
	s.Reachable = false
	return s
}

func TestPreferredVersion(t *testing.T) {
	old := source(t, "a", "v1.31.0", "g.io/v1 things Thing Namespaced\ng.io/v1beta1 things Thing Namespaced")
	both := source(t, "b", "v1.32.0", "g.io/v2 things Thing Namespaced\ng.io/v1 things Thing Namespaced")
	apart := source(t, "c", "v1.33.0", "g.io/v3 things Thing Namespaced")
	previously := func(sources ...Source) *Merged { return Merge(sources, nil, nil) }

	tests := []struct {
		name     string
		sources  []Source
		previous *Merged
		want     string
	}{
		{"one server decides", []Source{both}, nil, "v2"},
		{"what all serve, while they disagree", []Source{old, both}, nil, "v1"},
		{"nothing in common: the newest server's", []Source{old, apart}, nil, "v3"},
		{"disagreement keeps what was told", []Source{old, both}, previously(both), "v2"},
		{"the new server alone, the old one away: it still counts", []Source{away(old), both}, previously(old, both), "v1"},
		{"the upgrade is done", []Source{both}, previously(old, both), "v2"},
		{"what was told is gone", []Source{old, both}, previously(apart), "v1"},
		{"what was told is stale", []Source{away(old), apart}, previously(old), "v3"},
		{"everything is stale", []Source{away(old), away(both)}, previously(old, both), "v1"},
		{"everything is stale, nothing was told", []Source{away(both)}, nil, "v2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := Merge(tt.sources, nil, tt.previous)
			if got, _ := m.PreferredVersion("g.io"); got != tt.want {
				t.Errorf("prefers %q, want %q in %s", got, tt.want, summary(m))
			}
		})
	}
}

func TestVersionsGoAndStay(t *testing.T) {
	const had = "v1 pods Pod Namespaced\ngone.io/v1 things Thing Namespaced"
	const has = "v1 pods Pod Namespaced"
	a, b, aNow := source(t, "a", "v1.31.0", had), source(t, "b", "v1.32.0", has), source(t, "a", "v1.32.0", has)
	before := Merge([]Source{a, b}, nil, nil)
	f := func(name string, want string, sources ...Source) {
		t.Helper()
		if got := summary(Merge(sources, nil, before)); got != want {
			t.Errorf("%s:\n got %swant %s", name, got, want)
		}
	}

	f("both are there", ": v1[pods]\ngone.io: v1[things]\n", a, b)
	f("its server is away", ": v1[pods]\ngone.io: ~v1[things]\n", away(a), b)
	f("its server has just started and said nothing", ": v1[pods]\ngone.io: ~v1[things]\n", Source{Server: "a", Reachable: true}, b)
	f("no server has said anything", ": ~v1[pods]\ngone.io: ~v1[things]\n", Source{Server: "a"}, Source{Server: "b"})
	f("its server says that it is gone", ": v1[pods]\n", aNow, b)
	f("its server is not ours any more", ": v1[pods]\n", b)
	f("no server is ours any more", "nothing\n")
}

// A server that reports a group version as stale has only lost the extension
// apiserver behind it.
func TestStaleAtTheServer(t *testing.T) {
	const metrics = "metrics.k8s.io/v1beta1 pods PodMetrics Namespaced"
	stale := metrics + "\nmetrics.k8s.io/v1beta1 (stale)"
	f := func(want string, sources ...Source) {
		t.Helper()
		if got := summary(Merge(sources, nil, nil)); got != want {
			t.Errorf("got %swant %s", got, want)
		}
	}
	f("metrics.k8s.io: ~v1beta1[pods]\n", source(t, "a", "v1", stale))
	f("metrics.k8s.io: v1beta1[pods]\n", source(t, "a", "v1", stale), source(t, "b", "v1", metrics))
	f("metrics.k8s.io: ~v1beta1[pods]\n", source(t, "a", "v1", stale), away(source(t, "b", "v1", metrics)))
}

// Of several conversions for one resource the one with a target that is served
// now is taken.
func TestConversionToALiveTarget(t *testing.T) {
	a := away(source(t, "a", "v1.31.0", "g.io/v2 things NewThing Namespaced"))
	b := source(t, "b", "v1.32.0", "g.io/v1 things Thing Namespaced")
	m := Merge([]Source{a, b}, conversions(t, "g.io/v1alpha1 things -> g.io/v2 things\ng.io/v1alpha1 things -> g.io/v1 things"), nil)
	if r, ok := m.Resource("g.io", "v1alpha1", "things"); !ok || r.ResponseKind.Kind != "Thing" {
		t.Errorf("converted from %v, want from v1", r)
	}
}

func TestMergeDoesNotChangeItsInput(t *testing.T) {
	a := source(t, "a", "v1.31.0", "v1 pods Pod Namespaced verbs=get short=p sub=status")
	b := source(t, "b", "v1.32.0", "v1 pods Pod Namespaced verbs=list short=po sub=log")
	for _, s := range []*Source{&a, &b} { // room to grow, which append would use
		r := &s.Groups[0].Versions[0].Resources[0]
		r.Verbs = append(make([]string, 0, 8), r.Verbs...)
	}
	Merge([]Source{a, b}, conversions(t, "v1beta1 pods -> v1 pods"), nil)
	r := b.Groups[0].Versions[0].Resources[0]
	if len(r.Verbs) != 1 || r.Verbs[:2][1] != "" || len(r.ShortNames) != 1 || len(r.Subresources) != 1 {
		t.Errorf("the source became %+v", r)
	}
}

// A server that comes and goes has only those documents made anew that change by it.
func TestDocumentsAreKept(t *testing.T) {
	a := source(t, "a", "v1.31.0", "v1 pods Pod Namespaced\nold.io/v1 things Thing Namespaced")
	b := source(t, "b", "v1.32.0", "v1 pods Pod Namespaced\napps/v1 deployments Deployment Namespaced")
	both := Merge([]Source{a, b}, nil, nil)
	alone := Merge([]Source{away(a), b}, nil, both)
	back := Merge([]Source{a, b}, nil, alone)
	for key, doc := range both.documents {
		changes := key == documentKey{"/apis", aggregatedV2} || key == documentKey{"/apis", aggregatedV2beta1} || key.path == "/apis/old.io/v1" || key.path == "/apis/old.io" || key.path == "/apis"
		if kept := alone.documents[key] == doc; kept == changes {
			t.Errorf("%v: kept %v while a is away", key, kept)
		}
	}
	sameDocuments(t, "back again", both, back)
}

// A control plane is a few servers that come, go and are upgraded, at random.
type controlPlane struct {
	rand    *rand.Rand
	servers []Source
}

// newView makes up what a server of some release serves.
func (c *controlPlane) newView(t *testing.T, name string) Source {
	release := c.rand.IntN(4)
	text := "v1 pods Pod Namespaced\n"
	for v := release + 2; v > release; v-- {
		text += fmt.Sprintf("g.io/v%d things Thing Namespaced\n", v)
	}
	if c.rand.IntN(2) == 0 {
		text += fmt.Sprintf("g%d.io/v1 others Other Cluster sub=status\n", release)
	}
	return source(t, name, fmt.Sprintf("v1.%d.0", 30+release), text)
}

func (c *controlPlane) step(t *testing.T) {
	s := &c.servers[c.rand.IntN(len(c.servers))]
	switch c.rand.IntN(3) {
	case 0:
		s.Reachable = !s.Reachable
	case 1:
		*s = c.newView(t, s.Server)
	case 2:
		*s = Source{Server: s.Server}
	}
}

// TestMergeHolds follows random control planes and checks what must hold at every
// step.
func TestMergeHolds(t *testing.T) {
	for seed := range uint64(40) {
		c := &controlPlane{rand: rand.New(rand.NewPCG(seed, 0))}
		for _, name := range []string{"a", "b", "c"} {
			c.servers = append(c.servers, c.newView(t, name))
		}
		convert := conversions(t, "g.io/v1alpha1 things -> g.io/v3 things\ng.io/v1alpha2 things -> g.io/v2 things\ng.io/v1 things -> g.io/v2 things")
		var previous *Merged
		for range 12 {
			m := Merge(c.servers, convert, previous)
			checkStep(t, c, convert, previous, m)
			previous = m
			c.step(t)
		}
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

func checkStep(t *testing.T, c *controlPlane, convert []Conversion, previous, m *Merged) {
	t.Helper()
	again := slices.Clone(c.servers)
	c.rand.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
	sameDocuments(t, "in another order", m, Merge(again, convert, previous))
	sameDocuments(t, "merged again", m, Merge(recut(c.servers), convert, m))
	if Merge(c.servers, convert, m) != m {
		t.Errorf("merged anew though nothing changed")
	}
	sameDocuments(t, "made from nothing", m, &Merged{documents: newDocuments(m.groups, nil)})

	for _, g := range m.groups {
		if _, ok := m.Answer(Request{Path: groupPath(g.Name)}); !ok {
			t.Errorf("group %q is listed but not answered", g.Name)
		}
		for i, v := range g.Versions {
			if _, ok := m.Answer(Request{Path: versionPath(g.Name, v.Version)}); !ok {
				t.Errorf("%s/%s is listed but not answered", g.Name, v.Version)
			}
			if i == 0 && m.Converted(g.Name, v.Version, "things") {
				t.Errorf("%s/%s is preferred though converted", g.Name, v.Version)
			}
		}
	}
	// What any known server has is there: nothing shrinks while one is away.
	for _, s := range knownSources(c.servers, previous) {
		for _, g := range s.Groups {
			for _, v := range g.Versions {
				for _, r := range v.Resources {
					if !m.Has(g.Name, v.Version, r.Resource) || m.Converted(g.Name, v.Version, r.Resource) {
						t.Errorf("%s of %s/%s is lost or taken for converted", r.Resource, g.Name, v.Version)
					}
				}
			}
		}
	}
}

// recut returns the same sources with their groups in new slices, as if each had
// said it again.
func recut(sources []Source) []Source {
	out := slices.Clone(sources)
	for i := range out {
		out[i].Groups = slices.Clone(out[i].Groups)
	}
	return out
}

func groupPath(group string) string {
	if group == "" {
		return "/api"
	}
	return "/apis/" + group
}

func sameDocuments(t *testing.T, what string, a, b *Merged) {
	t.Helper()
	if len(a.documents) != len(b.documents) {
		t.Errorf("%s: %d documents, then %d", what, len(a.documents), len(b.documents))
	}
	for key, doc := range a.documents {
		other, ok := b.documents[key]
		if !ok {
			t.Errorf("%s: %v is gone", what, key)
			continue
		}
		x, errX := doc.body(encodeJSON)
		y, errY := other.body(encodeJSON)
		if errX != nil || errY != nil || !bytes.Equal(x, y) {
			t.Errorf("%s: %v differs:\n%s%s", what, key, x, y)
		}
	}
}
