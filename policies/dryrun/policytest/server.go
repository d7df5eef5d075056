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

func serversOf(set *engine.Set, specs []serverSpec) ([]dryrun.Server, error) {
	servers := make([]dryrun.Server, 0, len(specs))
	for i, spec := range specs {
		server, err := spec.server(set)
		if err != nil {
			return nil, fmt.Errorf("servers[%d]: %w", i, err)
		}
		servers = append(servers, server)
	}
	return servers, nil
}

func (s *serverSpec) server(set *engine.Set) (dryrun.Server, error) {
	out := dryrun.Server{Name: s.Name, Down: s.Down, Serves: dryrun.Unconverted(set)}
	if s.Name == "" {
		return out, fmt.Errorf("a server has no name")
	}
	var err error
	if s.Version != "" {
		if out.Version, err = engine.ParseVersion(s.Version); err != nil {
			return out, err
		}
	}
	if s.Emulation != "" {
		if out.Emulation, err = engine.ParseVersion(strings.TrimSuffix(s.Emulation, ".0") + ".0"); err != nil {
			return out, fmt.Errorf("emulation: want one such as \"v1.31\": %w", err)
		}
	}
	if s.Serves != nil {
		out.Serves, err = serves(s.Serves)
	}
	return out, err
}

// serves reads the list of what a server serves.
func serves(list []string) (func(group, version, resource string) bool, error) {
	var all []schema.GroupVersionResource
	for _, text := range list {
		groupVersion, resource, _ := strings.Cut(text, " ")
		gv, err := schema.ParseGroupVersion(groupVersion)
		if err != nil || gv.Version == "" {
			return nil, fmt.Errorf("serves: %q is none of \"policy/v1\" and \"policy/v1 poddisruptionbudgets\"", text)
		}
		all = append(all, gv.WithResource(resource))
	}
	return func(group, version, resource string) bool {
		return slices.ContainsFunc(all, func(s schema.GroupVersionResource) bool {
			return s.Group == group && s.Version == version && (s.Resource == "" || s.Resource == resource)
		})
	}, nil
}
