package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
	"github.com/mixed-version-proxy/mvp/policies/dryrun/kindschema"
	"github.com/mixed-version-proxy/mvp/proxy/builtin"
)

// schemaCluster is what --schema takes for the server of --kubeconfig.
const schemaCluster = "cluster"

// kinds knows the schemas of kinds, from what the user gives and from the Go types of
// Kubernetes' own.
type kinds struct {
	given   kindschema.Schemas
	offline func(convert.Version) convert.Schema
}

// kinds reads the schemas of --schema, --resources and the CustomResourceDefinitions
// among the manifests.
func (opts *testPolicyOptions) kinds(manifests []dryrun.Manifest) (*kinds, error) {
	resources, err := readResources(opts.resources)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(resources, manifests)
	k := &kinds{offline: offlineSchemas(all)}
	for i := range all {
		if all[i].Kind != "CustomResourceDefinition" {
			continue
		}
		if err := k.given.Add(all[i].JSON); err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].String(), err)
		}
	}
	for _, name := range opts.schemas {
		if err := k.read(name, opts.kubeconfig); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// read adds the schemas of one --schema.
func (k *kinds) read(name, kubeconfig string) error {
	if name == schemaCluster {
		return k.readCluster(kubeconfig)
	}
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("cannot read --schema: %w", err)
	}
	defer file.Close()
	documents, err := dryrun.ReadDocuments(file, name)
	if err != nil {
		return err
	}
	for _, d := range documents {
		if err := k.given.Add(d.JSON); err != nil {
			return fmt.Errorf("cannot use --schema %s: %w", d.Source, err)
		}
	}
	if len(documents) == 0 {
		return fmt.Errorf("cannot use --schema %s: it is empty", name)
	}
	return nil
}

// readCluster adds those of all kinds that the server of the kubeconfig serves.
func (k *kinds) readCluster(kubeconfig string) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("cannot use --schema cluster: %w", err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot use --schema cluster: %w", err)
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		return fmt.Errorf("cannot read the schemas of %s: %w", config.Host, err)
	}
	for path, group := range paths {
		if err := k.readPath(path, group); err != nil {
			return fmt.Errorf("cannot read the schemas of %s: %s: %w", config.Host, path, err)
		}
	}
	return nil
}

func (k *kinds) readPath(path string, group openapi.GroupVersion) error {
	if !strings.HasPrefix(path, "api/v") && !strings.HasPrefix(path, "apis/") {
		return nil // version, openid and the like have no kinds
	}
	document, err := group.Schema("application/json")
	if err != nil {
		return err
	}
	return k.given.Add(document)
}

// find returns the schema of a version of a kind.
func (k *kinds) find(v convert.Version) (kindschema.Kind, knownKind, bool) {
	kind := kindschema.Kind{Group: v.Group, Version: v.Version, Kind: v.Kind}
	if s, ok := k.given.Find(kind); ok {
		return kind, knownKind{Schema: s}, true
	}
	if kind, s, ok := k.given.FindResource(v.Group, v.Version, v.Resource); ok {
		return kind, knownKind{Schema: s}, true
	}
	s, ok := builtin.Find(v.Group, v.Version, v.Kind)
	if !ok {
		s, ok = builtin.FindResource(v.Group, v.Version, v.Resource)
	}
	if !ok {
		return kind, knownKind{}, false
	}
	kind.Kind = s.Type().Name()
	return kind, knownKind{kindschema.OfType(s.Type()), true}, true
}

// types is what conversions ask for.
func (k *kinds) types(v convert.Version) convert.Schema {
	if _, s, ok := k.find(v); ok && !s.builtin {
		return convert.Named{Types: s}
	}
	return k.offline(v)
}

// schema is what results are checked against; nil without --schema, which asks for it.
func (opts *testPolicyOptions) schema(k *kinds) func(convert.Version) *kindschema.Schema {
	if len(opts.schemas) == 0 {
		return nil
	}
	return func(v convert.Version) *kindschema.Schema {
		if _, s, ok := k.find(v); ok && !s.builtin {
			return s.Schema
		}
		return nil
	}
}
