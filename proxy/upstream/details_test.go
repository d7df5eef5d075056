package upstream

import (
	"fmt"
	"strings"
	"testing"
)

// crdDocument is a CRD with one version that is no longer served.
func crdDocument(resourceVersion, kind string) string {
	return fmt.Sprintf(`{"metadata":{"name":"customresources.myapps.example.com","uid":"u1","resourceVersion":%q,"annotations":{"a":"b"}},
		"spec":{"group":"myapps.example.com","names":{"plural":"customresources","kind":%q,"shortNames":7},"unknown":[1],"versions":[
			{"name":"v1alpha1","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type": "object","x":1.10}}},
			{"name":"v1beta1","served":true,"storage":true}]}}`, resourceVersion, kind)
}

func crdMetadata(resourceVersion, next string) string {
	return fmt.Sprintf(`{"kind":"PartialObjectMetadataList","metadata":{"continue":%q},"items":[
		{"metadata":{"name":"customresources.myapps.example.com","uid":"u1","resourceVersion":%q}}]}`, next, resourceVersion)
}

const crdName = "customresources.myapps.example.com"

func TestCRDs(t *testing.T) {
	f := newFake(t)
	f.set(crdsTarget, crdMetadata("1", ""))
	f.set(crdsTarget+"/"+crdName, crdDocument("1", "CustomResource"))
	p := runPool(t, nil, f)
	crd := func() *CRD { return p.View().Servers[0].CRDs[crdName] }
	got := crd()
	if got == nil || got.Group != "myapps.example.com" || got.Plural != "customresources" || got.Kind != "CustomResource" {
		t.Fatalf("CRD is %+v", got)
	}
	if v := got.Versions["v1alpha1"]; v.Served || v.Storage || string(v.Schema) != `{"type": "object","x":1.10}` {
		t.Errorf("v1alpha1 is %+v, schema %s", v, v.Schema)
	}
	if v := got.Versions["v1beta1"]; !v.Served || !v.Storage || v.Schema != nil {
		t.Errorf("v1beta1 is %+v", v)
	}

	// Nothing is read again while the resourceVersion is the same.
	lists, _ := f.asked(crdsTarget)
	eventually(t, "more lists", func() bool { n, _ := f.asked(crdsTarget); return n > lists+5 })
	if n, _ := f.asked(crdsTarget + "/" + crdName); n != 1 || crd() != got {
		t.Errorf("the CRD was read %d times", n)
	}
	f.set(crdsTarget+"/"+crdName, crdDocument("2", "Other"))
	f.set(crdsTarget, crdMetadata("2", ""))
	eventually(t, "the change is seen", func() bool { return crd().Kind == "Other" })
	f.set(crdsTarget, `{"items":[]}`)
	eventually(t, "the CRD goes", func() bool { return crd() == nil })
}

// Servers on one etcd have the same CRDs: what one gave is not read from the other,
// and is held once.
func TestCRDsAreShared(t *testing.T) {
	a, b := newFake(t), newFake(t)
	a.set(crdsTarget, crdMetadata("1", ""))
	a.set(crdsTarget+"/"+crdName, crdDocument("1", "CustomResource"))
	p := runPool(t, nil, a, b)
	b.set(crdsTarget, crdMetadata("1", ""))
	eventually(t, "b has the CRD", func() bool { return p.View().Servers[1].CRDs[crdName] != nil })
	if n, _ := b.asked(crdsTarget + "/" + crdName); n != 0 || p.View().Servers[0].CRDs[crdName] != p.View().Servers[1].CRDs[crdName] {
		t.Errorf("b was asked %d times for what a gave", n)
	}
}

// A server that gives whole objects where metadata was asked for is believed.
func TestCRDsInTheList(t *testing.T) {
	f := newFake(t)
	f.set(crdsTarget, `{"items":[`+crdDocument("1", "CustomResource")+`]}`)
	s := runPool(t, nil, f).View().Servers[0]
	if crd := s.CRDs[crdName]; crd == nil || crd.Kind != "CustomResource" {
		t.Errorf("CRD is %+v", crd)
	}
	if n, _ := f.asked(crdsTarget + "/" + crdName); n != 0 {
		t.Errorf("the CRD was read %d times more", n)
	}
}

func TestCRDPages(t *testing.T) {
	f := newFake(t)
	f.byAccept = func(path, _ string) (string, string) {
		if path != crdsTarget {
			return "", ""
		}
		last := f.requests[len(f.requests)-1].URL.Query() // the fake's lock is held
		if last.Get("limit") != "500" {
			return "application/json", "400 no limit"
		}
		if last.Get("continue") == "more&more" {
			return "application/json", crdMetadata("1", "")
		}
		return "application/json", `{"metadata":{"continue":"more&more"},"items":[]}`
	}
	f.set(crdsTarget+"/"+crdName, crdDocument("1", "CustomResource"))
	if s := runPool(t, nil, f).View().Servers[0]; s.CRDs[crdName] == nil {
		t.Errorf("CRDs are %v", s.CRDs)
	}
}

// Not being allowed to read CRDs is told from there being none, and passes.
func TestCRDsForbidden(t *testing.T) {
	f := newFake(t)
	f.set(crdsTarget, `403 {"kind":"Status"}`)
	p := runPool(t, nil, f)
	if s := p.View().Servers[0]; s.CRDs != nil || !s.CRDsForbidden || !s.Healthy {
		t.Errorf("CRDs %v, forbidden %v, healthy %v", s.CRDs, s.CRDsForbidden, s.Healthy)
	}
	f.set(crdsTarget, `{"items":[]}`)
	eventually(t, "allowed", func() bool { s := p.View().Servers[0]; return s.CRDs != nil && !s.CRDsForbidden })
}

func TestOpenAPIIndexFollows(t *testing.T) {
	f := newFake(t)
	p := runPool(t, nil, f)
	f.set("/openapi/v3", `{"paths":{"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=B"}}}`)
	eventually(t, "the new hash", func() bool {
		return strings.HasSuffix(p.View().Servers[0].OpenAPIV3["apis/apps/v1"], "hash=B")
	})
	f.set("/openapi/v3", "not JSON")
	asked, _ := f.asked("/openapi/v3")
	eventually(t, "more polls", func() bool { n, _ := f.asked("/openapi/v3"); return n > asked+3 })
	if got := p.View().Servers[0].OpenAPIV3["apis/apps/v1"]; !strings.HasSuffix(got, "hash=B") {
		t.Errorf("a broken index replaced the good one: %q", got)
	}
}
