package tour

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

const (
	oldResources = "/apis/myapps.example.com/v1alpha1/namespaces/default/customresources"
	newResources = "/apis/myapps.example.com/v1beta1/namespaces/default/customresources"
	oldBudgets   = "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets"
	newBudgets   = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
	flowSchemas  = "/apis/flowcontrol.apiserver.k8s.io/v1beta3/flowschemas"
	deployments  = "/apis/apps/v1/namespaces/default/deployments"
)

func (t *tour) createCustomResource(ctx context.Context) error {
	r, err := direct(t.newer, http.MethodPost, oldResources).with("customresource-v1alpha1.yaml")
	if err != nil {
		return err
	}
	if _, err := t.send(ctx, r, http.StatusNotFound); err != nil {
		return err
	}
	r.to, r.url = "MVP", t.URL
	if _, err := t.send(ctx, r, http.StatusCreated); err != nil {
		return err
	}
	stored, err := t.send(ctx, direct(t.newer, http.MethodGet, newResources+"/shop"), http.StatusOK)
	if err != nil {
		return err
	}
	return errors.Join(
		expect(stored, 30.0, "spec", "config", "requestTimeoutSeconds"),
		expect(stored, "stateless", "spec", "stateManagement"))
}

func (t *tour) patchCustomResource(ctx context.Context) error {
	r := t.mvp(http.MethodPatch, oldResources+"/shop")
	r.contentType = "application/merge-patch+json"
	r.body = []byte(`{"spec":{"config":{"legacyTimeout":"45"}}}`)
	patched, err := t.send(ctx, r, http.StatusOK)
	if err != nil {
		return err
	}
	if err := errors.Join(
		expect(patched, "myapps.example.com/v1alpha1", "apiVersion"),
		expect(patched, "45", "spec", "config", "legacyTimeout"),
		expect(patched, "ephemeral", "spec", "stateManagement")); err != nil {
		return err
	}
	stored, err := t.send(ctx, direct(t.newer, http.MethodGet, newResources+"/shop"), http.StatusOK)
	if err != nil {
		return err
	}
	return expect(stored, 45.0, "spec", "config", "requestTimeoutSeconds")
}

// watchCustomResources opens a watch in the old version, changes the object in
// the new one at a server, and waits for the event.
func (t *tour) watchCustomResources(ctx context.Context) error {
	list, err := t.do(ctx, t.mvp(http.MethodGet, oldResources))
	if err != nil {
		return err
	}
	version, _ := list.field("metadata", "resourceVersion").(string)
	watch, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL+oldResources+"?watch=true&resourceVersion="+version, nil)
	if err != nil {
		return err
	}
	events, err := t.client.Do(watch)
	if err != nil {
		return err
	}
	defer events.Body.Close()
	t.show("MVP", "GET "+oldResources+"?watch=true", events.Status)

	change := direct(t.newer, http.MethodPatch, newResources+"/shop")
	change.contentType, change.body = "application/merge-patch+json", []byte(`{"spec":{"config":{"requestTimeoutSeconds":60}}}`)
	if _, err := t.send(ctx, change, http.StatusOK); err != nil {
		return err
	}
	line, err := bufio.NewReader(events.Body).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("cannot read the event: %w", err)
	}
	var event struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return fmt.Errorf("cannot read the event %q: %w", line, err)
	}
	object := answer{body: event.Object}
	t.show("MVP", "event "+event.Type, object.summary())
	return errors.Join(
		expect(object, "myapps.example.com/v1alpha1", "apiVersion"),
		expect(object, "60", "spec", "config", "legacyTimeout"))
}

func (t *tour) createBudget(ctx context.Context) error {
	r, err := direct(t.newer, http.MethodPost, oldBudgets).with("pdb-v1beta1.yaml")
	if err != nil {
		return err
	}
	if _, err := t.send(ctx, r, http.StatusNotFound); err != nil {
		return err
	}
	r.to, r.url = "MVP", t.URL
	if _, err := t.send(ctx, r, http.StatusCreated); err != nil {
		return err
	}
	stored, err := t.send(ctx, direct(t.newer, http.MethodGet, newBudgets+"/shop"), http.StatusOK)
	if err != nil {
		return err
	}
	return expect(stored, 1.0, "spec", "minAvailable")
}

// listTimes is how often a list is repeated: a load balancer would send half of
// them to the server that cannot answer.
const listTimes = 20

func (t *tour) listFlowSchemas(ctx context.Context) error {
	failed := 0
	for i := range listTimes {
		server := t.old
		if i%2 == 1 {
			server = t.newer
		}
		a, err := t.do(ctx, direct(server, http.MethodGet, flowSchemas))
		if err != nil {
			return err
		}
		if a.code != http.StatusOK {
			failed++
		}
	}
	t.show("balancer", fmt.Sprintf("GET %s, %d times in turn", flowSchemas, listTimes), fmt.Sprintf("%d failed with 404", failed))
	if failed != listTimes/2 {
		return fmt.Errorf("%d lists failed directly, want %d", failed, listTimes/2)
	}
	if err := t.repeat(ctx, flowSchemas); err != nil {
		return err
	}
	t.old.Stop()
	t.show(t.old.Version, "is stopped", "nobody serves v1beta3 now")
	err := t.repeat(ctx, flowSchemas)
	return errors.Join(err, t.old.Start())
}

// repeat gets path from MVP many times, none of which may fail.
func (t *tour) repeat(ctx context.Context, path string) error {
	for range listTimes {
		a, err := t.do(ctx, t.mvp(http.MethodGet, path))
		if err != nil {
			return err
		}
		if a.code != http.StatusOK {
			return fmt.Errorf("MVP answered %d to GET %s, want 200: %s", a.code, path, a.body)
		}
	}
	t.show("MVP", fmt.Sprintf("GET %s, %d times", path, listTimes), "none failed")
	return nil
}

func (t *tour) preferNewServer(ctx context.Context) error {
	r, err := t.mvp(http.MethodPost, deployments).with("deployment.yaml")
	if err != nil {
		return err
	}
	if _, err := t.send(ctx, r, http.StatusCreated); err != nil {
		return err
	}
	t.show("", "answered by "+t.answeredBy(http.MethodPost, deployments), "by preferApiServerVersion: v1.32.y")
	t.newer.Stop()
	t.show(t.newer.Version, "is stopped", "")
	if err := t.repeat(ctx, deployments); err != nil {
		return errors.Join(err, t.newer.Start())
	}
	t.show("", "answered by "+t.answeredBy(http.MethodGet, deployments), "")
	return t.newer.Start()
}

// answeredBy is the server that answered the request last.
func (t *tour) answeredBy(method, path string) string {
	for _, server := range t.Plane.Servers() {
		requests := server.Requests()
		for i := len(requests) - 1; i >= 0; i-- {
			if requests[i].Method == method && requests[i].Target == path {
				return server.Version
			}
		}
	}
	return "no server"
}
