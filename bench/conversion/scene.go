package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
	"github.com/mixed-version-proxy/mvp/bench/lab/webhook"
)

// The groups of the two definitions of the same kind.
const (
	gone   = "gone.example.com"   // serves the new version only: MVP converts
	hooked = "hooked.example.com" // serves both: kube-apiserver asks the webhook
)

// The routes, by their index in scene.routes.
const (
	direct = iota
	unconverted
	byRules
	byPrograms
	hookedDirect
	byWebhook
)

// scene is what is measured: one kube-apiserver, the webhook, and MVP twice, with the
// same conversion as rules and as jq programs.
type scene struct {
	lab      *controlplane.ControlPlane
	hook     *webhook.Server
	binary   string // of MVP
	rules    *mvp
	programs *mvp
	routes   []*route
}

func newScene(ctx context.Context, o options) (_ *scene, err error) {
	s := &scene{binary: o.mvp}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.lab, err = controlplane.Start(ctx, controlplane.Config{Versions: []string{o.version}}); err != nil {
		return nil, err
	}
	if s.binary == "" {
		s.binary = filepath.Join(s.lab.Dir(), "mvp")
		build := exec.CommandContext(ctx, "go", "build", "-o", s.binary, "github.com/mixed-version-proxy/mvp/cmd/mvp")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("cannot build mvp: %w\n%s", err, out)
		}
	}
	if s.hook, err = webhook.Start(); err != nil {
		return nil, err
	}
	client, err := newClient(s.lab)
	if err != nil {
		return nil, err
	}
	server := s.lab.URL("a")
	s.routes = []*route{
		direct:       {name: "direct", base: server, group: gone, version: webhook.New, direct: direct, client: client},
		unconverted:  {name: "through MVP, unconverted", group: gone, version: webhook.New, direct: direct, client: client},
		byRules:      {name: "through MVP, converted by rules", group: gone, version: webhook.Old, direct: direct, client: client},
		byPrograms:   {name: "through MVP, converted by jq", group: gone, version: webhook.Old, direct: direct, client: client},
		hookedDirect: {name: "direct, no conversion needed", base: server, group: hooked, version: webhook.New, direct: hookedDirect, client: client},
		byWebhook:    {name: "direct, converted by the webhook", base: server, group: hooked, version: webhook.Old, direct: hookedDirect, client: client},
	}
	if err := s.define(ctx); err != nil {
		return nil, err
	}
	if s.rules, err = s.startMVP(ctx, webhook.Rules(gone)); err != nil {
		return nil, err
	}
	if s.programs, err = s.startMVP(ctx, webhook.Programs(gone)); err != nil {
		return nil, err
	}
	for i, m := range map[int]*mvp{unconverted: s.rules, byRules: s.rules, byPrograms: s.programs} {
		s.routes[i].mvp, s.routes[i].base = m, m.url
	}
	return s, s.served(ctx)
}

// startMVP starts MVP before the kube-apiserver with the conversion among a hundred
// policies.
func (s *scene) startMVP(ctx context.Context, conversion map[string]string) (*mvp, error) {
	policies := otherPolicies(99)
	maps.Copy(policies, conversion)
	return startMVP(ctx, s.binary, s.lab, s.lab.URL("a"), policies)
}

// otherPolicies are n policies that have nothing to do with the measured kind, of the
// kinds that there are; some are asked about every request.
func otherPolicies(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("other-%02d", i)
		switch i % 4 {
		case 0:
			files[name+".convert.cel"] = fmt.Sprintf(
				`{'resource': 'things', 'from': 'other-%d.example.com/v1alpha1', 'to': 'other-%[1]d.example.com/v1'}`, i)
			files[name+".request.jq"] = `rename(.spec.a; .spec.b)`
			files[name+".response.jq"] = `rename(.spec.b; .spec.a)`
		case 1:
			files[name+".match.cel"] = fmt.Sprintf(`request.group == 'other-%d.example.com' && request.resource == 'things'`, i)
			files[name+".route.cel"] = `upstream.version.major == 1 && upstream.version.minor >= 32 ? 1 : 0`
		case 2:
			files[name+".match.cel"] = fmt.Sprintf(`request.resource == 'other%d' && request.verb in ['create', 'update']`, i)
			files[name+".warn.cel"] = `'others are going away'`
		case 3:
			files[name+".match.cel"] = fmt.Sprintf(`request.userAgent.startsWith('other-%d/')`, i)
			files[name+".deny.cel"] = `'not with this client'`
		}
	}
	return files
}

// define makes the two definitions, and lets MVP's own user see them.
func (s *scene) define(ctx context.Context) error {
	goneCRD, err := webhook.TargetOnlyCRD(gone)
	if err != nil {
		return err
	}
	hookedCRD, err := s.hook.CRD(hooked)
	if err != nil {
		return err
	}
	const crds, rbac = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/rbac.authorization.k8s.io/v1/"
	for _, object := range []struct {
		path string
		body []byte
	}{
		{crds, goneCRD},
		{crds, hookedCRD},
		{rbac + "clusterroles", []byte(`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "mvp"}, "rules": [
			{"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get", "list", "watch"]},
			{"apiGroups": ["apiregistration.k8s.io"], "resources": ["apiservices"], "verbs": ["get", "list", "watch"]}]}`)},
		{rbac + "clusterrolebindings", []byte(`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "mvp"},
			"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "mvp"},
			"subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "` + controlplane.Discovery + `"}]}`)},
	} {
		if _, err := s.routes[direct].do(ctx, http.MethodPost, object.path, object.body); err != nil {
			return err
		}
	}
	for _, i := range []int{direct, hookedDirect, byWebhook} {
		if err := s.routes[i].answers(ctx); err != nil {
			return err
		}
	}
	return nil
}

// served waits until all routes answer, MVP's with the conversion.
func (s *scene) served(ctx context.Context) error {
	for _, r := range s.routes {
		if err := r.answers(ctx); err != nil {
			return err
		}
	}
	return nil
}

// answers waits until a list of the route is answered in its version.
func (r *route) answers(ctx context.Context) error {
	return eventually(ctx, "there are "+r.group+" in "+r.version, func() error {
		answer, err := r.do(ctx, http.MethodGet, r.path()+"?limit=1", nil)
		if err == nil && !bytes.Contains(answer, []byte(r.group+"/"+r.version)) {
			return fmt.Errorf("%s answered %.200s", r.name, answer)
		}
		return err
	})
}

// writers is how many write at once where nothing is measured.
const writers = 8

// populate makes n objects in each group.
func (s *scene) populate(ctx context.Context, n int) error {
	for _, i := range []int{direct, hookedDirect} {
		r := s.routes[i]
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(writers)
		for k := range n {
			group.Go(func() error {
				_, err := r.do(ctx, http.MethodPost, r.path(), r.object(fmt.Sprintf("g-%05d", k), "x", ""))
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// object is one object in the route's version, of about 4 KB as the server sends it.
// The mark is a text in it that a write changes; resourceVersion is what it is based
// on, or empty.
func (r *route) object(name, mark, resourceVersion string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `{"apiVersion":"%s/%s","kind":"Gadget","metadata":{"name":%q,"namespace":"default"`, r.group, r.version, name)
	if resourceVersion != "" {
		fmt.Fprintf(&b, `,"resourceVersion":%q`, resourceVersion)
	}
	if r.old() {
		b.WriteString(`,"labels":{"stage":"prod"}},"spec":{"timeout":"30","mode":"ephemeral","owner":"team-a","replicas":2,` +
			`"endpoints":[{"name":"web","number":8080},{"name":"admin","number":8081}],"settings":{`)
	} else {
		b.WriteString(`,"labels":{"stage":"production"}},"spec":{"requestTimeoutSeconds":30,"mode":"stateless","contact":{"owner":"team-a"},"scaling":{"replicas":2},` +
			`"endpoints":[{"name":"web","port":8080},{"name":"admin","port":8081}],"settings":{`)
	}
	fmt.Fprintf(&b, `"mark":%q`, mark)
	for i := range 24 {
		fmt.Fprintf(&b, `,"setting-%02d":"%s"`, i, strings.Repeat("some words ", 8))
	}
	b.WriteString("}}}")
	return []byte(b.String())
}

// close ends all that was started.
func (s *scene) close() error {
	var errs []error
	for _, m := range []*mvp{s.rules, s.programs} {
		if m != nil {
			errs = append(errs, m.stop())
		}
	}
	if s.lab != nil {
		dir := s.lab.Dir()
		errs = append(errs, s.lab.Close())
		if _, err := os.Stat(dir); err == nil {
			errs = append(errs, fmt.Errorf("%s is still there", dir))
		}
	}
	if s.hook != nil {
		errs = append(errs, s.hook.Close())
	}
	return errors.Join(errs...)
}
