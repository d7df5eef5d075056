package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// What Alice may do, as two objects for server-side apply.
var aliceObjects = []struct{ resource, object string }{
	{"roles/configmap-reader", `{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
		"metadata": {"name": "configmap-reader"},
		"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]
	}`},
	{"rolebindings/alice-configmap-reader", `{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
		"metadata": {"name": "alice-configmap-reader"},
		"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "configmap-reader"},
		"subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]
	}`},
}

// grantAlice gives Alice her permissions, by the first kube-apiserver.
func (c *ControlPlane) grantAlice(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("waited %s", readyTimeout))
	defer cancel()
	client, err := c.HTTPClient(Admin)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for _, o := range aliceObjects {
		url := c.URL(c.Names()[0]) + "/apis/rbac.authorization.k8s.io/v1/namespaces/default/" + o.resource + "?fieldManager=mvp-lab"
		if err := applyWhenPossible(ctx, client, url, o.object); err != nil {
			return fmt.Errorf("cannot give %s her permissions: %w", Alice, err)
		}
	}
	return nil
}

// applyWhenPossible tries again as long as the namespace is missing: it appears
// some moments after a new control plane is ready.
func applyWhenPossible(ctx context.Context, client *http.Client, url, object string) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, strings.NewReader(object))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/apply-patch+yaml")
		err = do(client, req)
		var status *statusError
		if err == nil || !errors.As(err, &status) || status.code != http.StatusNotFound {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(pollInterval):
		}
	}
}
