package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/policies"
)

const (
	// conditionAccepted is the condition of an object.
	conditionAccepted = "Accepted"

	// maxMessageBytes bounds the message of a condition, which the API lets have
	// 32 KiB.
	maxMessageBytes = 16 << 10

	// writeTimeout bounds one write.
	writeTimeout = 10 * time.Second

	// writePause is between two writes: ten a second, far below what a
	// kube-apiserver would hold back.
	writePause = 100 * time.Millisecond

	// writeRetry is when to try again what could not be written.
	writeRetry = 5 * time.Second
)

// status is that of a TransformationRules.
type status struct {
	// Policies counts the policies of the object that are live.
	Policies   int64              `json:"policies"`
	Conditions []metav1.Condition `json:"conditions"`
}

// write says of each object what became of it, until ctx is done.
func (w *Watcher) write(ctx context.Context) {
	told := map[string]string{} // what was told last, by event, of what has no status
	for {
		failed := w.writeAll(ctx, told)
		w.tellFiles(told)
		var retry <-chan time.Time
		if failed {
			retry = time.After(writeRetry)
		}
		select {
		case <-ctx.Done():
			return
		case <-w.dirty:
		case <-retry:
		}
	}
}

// writeAll says what is new. It reports whether some of that could not be said.
func (w *Watcher) writeAll(ctx context.Context, told map[string]string) (failed bool) {
	w.mu.Lock()
	objects := w.handed
	w.mu.Unlock()
	statuses := map[string]*policies.ObjectStatus{}
	live := w.cfg.Store.Status()
	for i := range live.Objects {
		statuses[live.Objects[i].Name] = &live.Objects[i]
	}
	for i := range objects {
		h := &objects[i]
		s := statuses[h.name]
		if s == nil || ctx.Err() != nil {
			continue
		}
		if h.source.resource != rulesResource {
			w.tell(told, h.name+" "+h.version(), h.object, s)
			continue
		}
		wrote, err := w.writeStatus(ctx, h, s)
		switch {
		case err != nil:
			failed = true
		case wrote:
			w.tell(told, h.name+" "+h.version(), h.object, s)
			sleep(ctx, writePause)
		}
	}
	maps.DeleteFunc(told, func(name, _ string) bool { return name != aboutFiles && statuses[name] == nil })
	return failed
}

// writeStatus writes what became of one object, if its status says something else.
func (w *Watcher) writeStatus(ctx context.Context, h *handed, s *policies.ObjectStatus) (wrote bool, err error) {
	now := h.source.get(h.name)
	if now == nil || now.GetUID() != h.object.GetUID() || now.GetGeneration() != h.object.GetGeneration() {
		return false, nil // it is another one by now, and the store will have it in a moment
	}
	was := statusOf(now)
	want := status{Policies: int64(s.Policies), Conditions: []metav1.Condition{condition(was, s, now.GetGeneration())}}
	if was.Policies == want.Policies && same(was.Conditions, &want.Conditions[0]) {
		return false, nil
	}
	written, err := w.apply(ctx, h, want)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil // it was deleted, or made anew: the watch will tell
	}
	w.problems.note(ctx, "write the status of TransformationRules", err)
	if err != nil {
		return false, err
	}
	h.source.written(written)
	return true, nil
}

// apply writes a status by server-side apply. The UID keeps it from an object that was
// made anew under the name.
func (w *Watcher) apply(ctx context.Context, h *handed, s status) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(map[string]any{
		"apiVersion": h.object.GetAPIVersion(), "kind": h.object.GetKind(),
		"metadata": map[string]any{"name": h.object.GetName(), "uid": h.object.GetUID()},
		"status":   s,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	force := true // nobody else has a say in this status
	return h.source.client.Patch(ctx, h.object.GetName(), types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: fieldManager, Force: &force}, "status")
}

// statusOf reads the status of an object; what is not of its form is none.
func statusOf(o *unstructured.Unstructured) status {
	var s struct {
		Status status `json:"status"`
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &s) != nil {
		return status{Policies: -1}
	}
	return s.Status
}

// condition says what became of an object that had a status before.
func condition(was status, s *policies.ObjectStatus, generation int64) metav1.Condition {
	c := metav1.Condition{
		Type: conditionAccepted, Status: metav1.ConditionTrue, Reason: s.Reason, Message: message(s),
		ObservedGeneration: generation, LastTransitionTime: metav1.Now(),
	}
	if !s.Accepted() {
		c.Status = metav1.ConditionFalse
	}
	if old := meta.FindStatusCondition(was.Conditions, c.Type); old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	return c
}

// same reports whether want is what conditions say.
func same(conditions []metav1.Condition, want *metav1.Condition) bool {
	old := meta.FindStatusCondition(conditions, want.Type)
	return old != nil && old.Status == want.Status && old.Reason == want.Reason && old.Message == want.Message &&
		old.ObservedGeneration == want.ObservedGeneration
}

// message says in words what became of an object: each mistake at its field, or at its
// line of the file.
func message(s *policies.ObjectStatus) string {
	if s.Accepted() {
		return live(s.Policies)
	}
	var b strings.Builder
	for i, e := range s.Err {
		text := inObject(e, s.Name)
		if b.Len()+len(text) > maxMessageBytes {
			fmt.Fprintf(&b, "and %d more mistakes\n", len(s.Err)-i)
			break
		}
		b.WriteString(text + "\n")
	}
	if s.Policies > 0 {
		b.WriteString("Until that is mended, what was accepted before stays: " + live(s.Policies) + ".")
	} else {
		b.WriteString("Until that is mended, nothing of the object is live.")
	}
	return b.String()
}

func live(policies int) string {
	if policies == 1 {
		return "1 policy is live"
	}
	return fmt.Sprintf("%d policies are live", policies)
}

// inObject is a mistake without the name of the object, of which it is told.
func inObject(e *source.Error, name string) string {
	short := *e
	short.Pos.File = strings.TrimLeft(strings.TrimPrefix(e.Pos.File, name), ":/ ")
	return short.Error()
}
