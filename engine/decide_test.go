package engine

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

func mustCompile(t testing.TB, policies ...Policy) *Set {
	t.Helper()
	set, err := Compile(policies)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func mustParse(t testing.TB, method, target string) *Request {
	t.Helper()
	r, err := ParseRequest(method, target)
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

func conversion(from, to string) *convert.Spec {
	v := func(version string) convert.Version {
		return convert.Version{Group: "example.com", Version: version, Resource: "widgets", Kind: "Widget"}
	}
	return &convert.Spec{From: v(from), To: v(to)}
}

// TestDecideErrors checks that the cause of a failed expression can be found.
func TestDecideErrors(t *testing.T) {
	set := mustCompile(t, Policy{Name: "a", Match: textOf("object.a == 1"), Deny: textOf("'no'")})
	tooLarge := errors.New("the body is too large")
	r := mustParse(t, "POST", "/api/v1/namespaces/a/pods")

	_, err := set.Decide(&Input{Request: r, Object: func() ([]byte, error) { return nil, tooLarge }})
	var eval *EvalError
	if !errors.Is(err, tooLarge) || !errors.As(err, &eval) || eval.Policy != "a" || eval.Role != "match" {
		t.Errorf("got %v, want an EvalError that wraps %v", err, tooLarge)
	}

	_, err = set.Decide(&Input{Request: r, Object: func() ([]byte, error) { return []byte(`{`), nil }})
	var body *BodyError
	if !errors.As(err, &body) {
		t.Errorf("got %v, want a BodyError", err)
	}

	for _, want := range []string{
		`a.convert.cel:1:7: cannot evaluate match of policy "a" for create /v1 pods a/: no such key: a`,
		`a.convert.cel:1:7: cannot evaluate match of policy "a" for create /v1 pods a/: no such key: a`,
	} {
		_, err = set.Decide(&Input{Request: r, Object: func() ([]byte, error) { return []byte(`{}`), nil }})
		if err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// TestDecideReadsBodyLazily checks that the body is read only by an expression
// that comes to look at it.
func TestDecideReadsBodyLazily(t *testing.T) {
	set := mustCompile(t,
		Policy{Name: "a", Match: textOf("request.verb == 'create' && object.a == 1"), Deny: textOf("object.b")},
		Policy{Name: "b", Match: textOf("[1, 2].exists(object, object == 2)"), Warn: textOf("'not the body'")},
	)
	reads := 0
	read := func() ([]byte, error) { reads++; return []byte(`{"a":1,"b":"no"}`), nil }

	d, err := set.Decide(&Input{Request: mustParse(t, "PUT", "/api/v1/namespaces/a/pods/p"), Object: read})
	if err != nil || reads != 0 || len(d.Warnings) != 1 {
		t.Errorf("PUT: got %+v, error %v, %d reads; want one warning and no read", d, err, reads)
	}
	d, err = set.Decide(&Input{Request: mustParse(t, "POST", "/api/v1/namespaces/a/pods"), Object: read})
	if err != nil || reads != 1 || d.Denied == nil {
		t.Errorf("POST: got %+v, error %v, %d reads; want a denial and one read", d, err, reads)
	}
}

func TestSet(t *testing.T) {
	pos := source.Pos{File: "rules.yaml", Line: 3, Col: 5}
	set := mustCompile(t,
		Policy{Name: "widgets", Origin: OriginLibrary, Convert: conversion("v1alpha1", "v1"), Pos: pos},
		Policy{Name: "old", Origin: OriginLibrary, Convert: conversion("v1beta1", "v1")},
		Policy{Name: "mine", Origin: OriginFile, Convert: conversion("v1alpha1", "v2"), Warn: textOf("'old'"), When: WhenAlways},
		Policy{Name: "audit", Origin: OriginObject, Convert: conversion("v1", "v2"), Audit: true},
		Policy{Name: "prefer", Prefer: &Preference{Resource: "pods", Server: VersionPattern{Major: 1, Minor: 32, AnyPatch: true}}},
	)
	want := []Info{
		{Name: "mine", Origin: OriginFile, Roles: []string{"convert", "warn"}, From: "example.com/v1alpha1 widgets", To: "example.com/v2 widgets", When: "always"},
		{Name: "prefer", Roles: []string{"prefer"}, Prefer: "v1.32.y"},
		{Name: "audit", Origin: OriginObject, Roles: []string{"convert"}, From: "example.com/v1 widgets", To: "example.com/v2 widgets", When: "unserved", Audit: true},
		{Name: "old", Origin: OriginLibrary, Roles: []string{"convert"}, From: "example.com/v1beta1 widgets", To: "example.com/v1 widgets", When: "unserved"},
		{Name: "widgets", Origin: OriginLibrary, Pos: pos, Roles: []string{"convert"}, From: "example.com/v1alpha1 widgets", To: "example.com/v1 widgets", When: "unserved", ShadowedBy: "mine"},
	}
	if got := set.Policies(); !reflect.DeepEqual(got, want) {
		t.Errorf("Policies:\n got %+v\nwant %+v", got, want)
	}
	check := func(set *Set) {
		t.Helper()
		var got []string
		for _, c := range set.Conversions() {
			got = append(got, c.Policy)
		}
		if want := []string{"mine", "old"}; !reflect.DeepEqual(got, want) {
			t.Errorf("Conversions: got %v, want %v", got, want)
		}
	}
	check(set)

	asked := map[convert.Version]bool{}
	with := set.WithSchemas(func(v convert.Version) convert.Schema { asked[v] = true; return nil })
	check(with)
	if !asked[conversion("v1alpha1", "v2").From] || !asked[conversion("v1alpha1", "v2").To] {
		t.Errorf("WithSchemas asked for %v only", asked)
	}
	d, err := with.Decide(&Input{Request: mustParse(t, "GET", "/apis/example.com/v1alpha1/widgets")})
	if err != nil || d.Conversion == nil || d.Conversion != with.Conversions()[0] {
		t.Errorf("got %+v, error %v, want the conversion of the copy", d, err)
	}
}

// TestOrder checks the order in which policies apply.
func TestOrder(t *testing.T) {
	want := []string{
		"10-a", "10-a.b", "10-a[10]", "10-a[2]", "9-b", // files: string order
		"a-b/apiMigrationRules[0]", "a/apiMigrationRules[2]", "a/apiMigrationRules[10]", "a/apiRoutingRules[1]", "a/apiRoutingRules[11]",
		"b/apiMigrationRules[0]",
		"a/shipped", "a/shipped[x]",
	}
	var policies []Policy
	for _, name := range want {
		p := Policy{Name: name, Warn: textOf("'a'")}
		if strings.HasPrefix(name, "a/shipped") {
			p.Origin = OriginLibrary
		}
		policies = append(policies, p)
	}
	slices.Reverse(policies)
	var got []string
	for _, info := range mustCompile(t, policies...).Policies() {
		got = append(got, info.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestDecideIndexes checks that the policies of a decision are found again in the
// set, also where a user's policy has the name of a shipped one and when the set is
// given schemas.
func TestDecideIndexes(t *testing.T) {
	set := mustCompile(t,
		Policy{Name: "same", Origin: OriginLibrary, Warn: textOf("'shipped'")},
		Policy{Name: "b", Match: textOf("false"), Warn: textOf("'never'")},
		Policy{Name: "same", Origin: OriginFile, Warn: textOf("'own'")},
		Policy{Name: "c", Origin: OriginFile, Convert: conversion("v1beta1", "v1")},
		Policy{Name: "heard", Origin: OriginLibrary, Audit: true, Warn: textOf("'would'")},
	)
	for name, set := range map[string]*Set{
		"compiled": set, "with schemas": set.WithSchemas(func(convert.Version) convert.Schema { return nil }),
	} {
		d, err := set.Decide(&Input{Request: mustParse(t, "GET", "/apis/example.com/v1beta1/widgets/w")})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		infos := set.Policies()
		for _, i := range d.Indexes {
			got = append(got, infos[i].Origin+" "+infos[i].Name)
		}
		for _, a := range d.Audited {
			got = append(got, infos[a.Index].Origin+" "+infos[a.Index].Name+" (audit)")
		}
		want := []string{"file c", "file same", "library same", "library heard (audit)"}
		if !slices.Equal(got, want) || len(d.Indexes) != len(d.Policies) {
			t.Errorf("%s: Indexes are those of %q, want %q", name, got, want)
		}
	}
}

// TestDecideNoPolicies checks that a request that nothing applies to costs
// nothing, also with policies for other resources.
func TestDecideNoPolicies(t *testing.T) {
	sets := map[string]*Set{"empty": mustCompile(t), "others": mustCompile(t, manyPolicies(50)...)}
	for name, set := range sets {
		in := &Input{Request: mustParse(t, "GET", "/api/v1/namespaces/web/configmaps/a")}
		allocs := testing.AllocsPerRun(100, func() {
			if d, err := set.Decide(in); err != nil || d.Routes() || len(d.Policies) > 0 {
				t.Errorf("%s: got %+v, error %v", name, d, err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

// manyPolicies returns policies of every form for n resources.
func manyPolicies(n int) []Policy {
	var policies []Policy
	for i := range n {
		resource := fmt.Sprintf("things%d", i)
		name := func(form string) string { return fmt.Sprintf("%05d-%s", i, form) }
		spec := conversion("v1alpha1", "v1")
		spec.From.Resource, spec.To.Resource = resource, resource
		policies = append(policies,
			Policy{Name: name("convert"), Convert: spec},
			Policy{Name: name("prefer"), Prefer: &Preference{Group: "example.com", Resource: resource, ClientVersion: "v1", Server: VersionPattern{Major: 1, Minor: 32, AnyPatch: true}}},
			Policy{Name: name("equals"), Match: textOf("request.verb == 'get' && request.resource == '" + resource + "'"), Warn: textOf("'equals'")},
			Policy{Name: name("in"), Match: textOf("(request.resource in ['" + resource + "', 'x'] || '" + resource + "x' == request.resource) && user.name == 'a'"), Route: textOf("upstream.healthy")},
		)
	}
	return policies
}

// TestIndex checks that the index changes no decision.
func TestIndex(t *testing.T) {
	policies := append(manyPolicies(4),
		Policy{Name: "00001-general", Match: textOf("request.verb != 'zzz'"), Warn: textOf("'general'")},
		Policy{Name: "00002-or", Match: textOf("request.resource == 'things1' || request.verb == 'list'"), Warn: textOf("'or'")},
		Policy{Name: "00002-none", Match: textOf("request.resource == '' && request.path == '/healthz'"), Warn: textOf("'none'")},
		Policy{Name: "00003-any-version", Prefer: &Preference{Group: "example.com", Resource: "things2"}},
		Policy{Name: "00003-both", Match: textOf("request.resource == 'things1' && request.resource in ['things2', 'things1'] && user.name == 'a'"), Warn: textOf("'both'")},
		Policy{Name: "00003-never", Match: textOf("request.resource == 'things1' && request.resource == 'things2'"), Warn: textOf("'never'")},
	)
	set := mustCompile(t, policies...)
	walk := &Set{policies: set.policies, index: index{general: set.policies}}
	for _, target := range []string{
		"/apis/example.com/v1alpha1/things1/a", "/apis/example.com/v1/things2/a", "/apis/example.com/v1/things2",
		"/api/v1/things1x/a", "/api/v1/x", "/api/v1/pods", "/healthz",
	} {
		for _, user := range []*User{{Name: "a"}, {Name: "b"}, nil} {
			in := &Input{Request: mustParse(t, "GET", target), User: func() (*User, error) { return user, nil }}
			got, gotErr := set.Decide(in)
			want, wantErr := walk.Decide(in)
			if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Errorf("%s: got error %v, want %v", target, gotErr, wantErr)
				continue
			}
			if wantErr == nil && (!reflect.DeepEqual(got.Policies, want.Policies) || got.Conversion != want.Conversion) {
				t.Errorf("%s:\n got %+v\nwant %+v", target, got, want)
			}
		}
	}
}

// TestSetConcurrently shares a set between goroutines, for the race detector.
func TestSetConcurrently(t *testing.T) {
	set := mustCompile(t,
		Policy{Name: "a", Match: textOf("request.name.startsWith('a') || object.x == 1"), Warn: textOf("'a' + request.name")},
		Policy{Name: "b", Match: textOf("request.verb == 'get'"), Route: textOf("upstream.name == request.name && upstream.serves('v1', 'pods')")},
		Policy{Name: "c", Match: textOf("request.verb == 'update' && object + 1 == 2"), Warn: textOf("'never'")},
	)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			name := fmt.Sprintf("a%d", i)
			get, put := mustParse(t, "GET", "/api/v1/namespaces/n/pods/"+name), mustParse(t, "PUT", "/api/v1/namespaces/n/pods/"+name)
			for range 50 {
				d, err := set.Decide(&Input{Request: get})
				if err != nil || len(d.Warnings) != 1 || d.Warnings[0] != "a"+name {
					t.Errorf("got %+v, error %v", d, err)
					return
				}
				_, ok, err := d.Score(&Upstream{Name: name, Serves: func(string, string) bool { return true }})
				if err != nil || !ok {
					t.Errorf("score: got %v, error %v", ok, err)
				}
				// An error tells of its own place, whoever else meets the like.
				_, err = set.Decide(&Input{Request: put, Object: func() ([]byte, error) { return []byte(`{}`), nil }})
				if want := `a.convert.cel:1:36: cannot evaluate match of policy "c" for update /v1 pods n/` + name + ": no such overload: _+_"; err == nil || err.Error() != want {
					t.Errorf("got %v\nwant %s", err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestUserIsLazy checks that nobody is asked who the user is before an expression
// wants to know, and then only once, and that a failure is the expression's.
func TestUserIsLazy(t *testing.T) {
	set := mustCompile(t,
		Policy{Name: "a", Match: textOf("request.name == 'secret'"), Deny: textOf("user.name == 'eve' || 'spies' in user.groups ? 'no' : ''")},
		Policy{Name: "b", Warn: textOf("request.name == 'secret' ? user.uid : ''")},
	)
	failed := errors.New("the server is away")
	tests := []struct {
		name    string
		user    func() (*User, error)
		asked   int
		want    []string // warnings
		wantErr string
	}{
		{"public", nil, 0, nil, ""},
		{"secret", func() (*User, error) { return &User{Name: "adam", UID: "u-7"}, nil }, 1, []string{"u-7"}, ""},
		{"secret", func() (*User, error) { return nil, failed }, 1, nil, "cannot find out who the user is: the server is away"},
		{"secret", func() (*User, error) { return nil, nil }, 1, nil, errUserUnknown.Error()},
	}
	for _, tt := range tests {
		asked := 0
		d, err := set.Decide(&Input{
			Request: mustParse(t, "GET", "/api/v1/namespaces/n/pods/"+tt.name),
			User:    func() (*User, error) { asked++; return tt.user() },
		})
		if asked != tt.asked {
			t.Errorf("%s: asked %d times, want %d", tt.name, asked, tt.asked)
		}
		if tt.wantErr != "" {
			if err == nil || !strings.HasSuffix(err.Error(), tt.wantErr) {
				t.Errorf("%s: error %v, want %q", tt.name, err, tt.wantErr)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(d.Warnings, tt.want) {
			t.Errorf("%s: %+v, %v, want %q", tt.name, d, err, tt.want)
		}
	}
	_, err := set.Decide(&Input{
		Request: mustParse(t, "GET", "/api/v1/namespaces/n/pods/secret"),
		User:    func() (*User, error) { return nil, failed },
	})
	if !errors.Is(err, failed) {
		t.Errorf("the error %v does not wrap its cause", err)
	}
}
