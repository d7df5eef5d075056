package policytest

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
)

// serverSpec is a kube-apiserver as a case writes it.
type serverSpec struct {
	Name string `json:"name"`

	// Version is its own, Emulation the one that it emulates: "v1.31.4", "v1.31".
	Version   string `json:"version"`
	Emulation string `json:"emulation"`

	// Serves are the group versions that it serves, with a resource or without:
	// "policy/v1", "policy/v1beta1 poddisruptionbudgets". Nil: everything but what
	// policies convert.
	Serves []string `json:"serves"`

	// Down says that it is not healthy.
	Down bool `json:"down"`
}

// userSpec is a user as a case writes it.
type userSpec struct {
	Name   string              `json:"name"`
	UID    string              `json:"uid"`
	Groups []string            `json:"groups"`
	Extra  map[string][]string `json:"extra"`
}

func (u *userSpec) user() *engine.User {
	if u == nil {
		return nil
	}
	return &engine.User{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
}

// serversOf are the servers that stand at the path at; what is wrong with them, fail is
// told.
func serversOf(at string, specs []serverSpec, fail func(path, format string, args ...any)) []dryrun.Server {
	servers := make([]dryrun.Server, len(specs))
	for i := range specs {
		servers[i] = specs[i].server(func(field, format string, args ...any) {
			fail(fmt.Sprintf("%s[%d]%s", at, i, field), format, args...)
		})
	}
	return servers
}

// server is the server; what is wrong with a field of it, fail is told.
func (s *serverSpec) server(fail func(field, format string, args ...any)) dryrun.Server {
	out := dryrun.Server{Name: s.Name, Down: s.Down}
	if s.Name == "" {
		fail("", "the server has no name")
	}
	var err error
	if s.Version != "" {
		if out.Version, err = engine.ParseVersion(s.Version); err != nil {
			fail(".version", "version: %v", err)
		}
	}
	if s.Emulation != "" {
		if out.Emulation, err = engine.ParseVersion(strings.TrimSuffix(s.Emulation, ".0") + ".0"); err != nil {
			fail(".emulation", "emulation: want one such as \"v1.31\": %v", err)
		}
	}
	if s.Serves != nil {
		out.Serves = serves(s.Serves, fail)
	}
	return out
}

// serves reads the list of what a server serves.
func serves(list []string, fail func(field, format string, args ...any)) func(group, version, resource string) bool {
	var all []schema.GroupVersionResource
	for i, text := range list {
		groupVersion, resource, _ := strings.Cut(text, " ")
		gv, err := schema.ParseGroupVersion(groupVersion)
		if err != nil || gv.Version == "" {
			fail(fmt.Sprintf(".serves[%d]", i), "serves: %q is none of \"policy/v1\" and \"policy/v1 poddisruptionbudgets\"", text)
			continue
		}
		all = append(all, gv.WithResource(resource))
	}
	return func(group, version, resource string) bool {
		return slices.ContainsFunc(all, func(s schema.GroupVersionResource) bool {
			return s.Group == group && s.Version == version && (s.Resource == "" || s.Resource == resource)
		})
	}
}
