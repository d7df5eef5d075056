package main

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	finalizer = "shop.example.com/widgets"
	tierLabel = "shop.example.com/tier"

	// appliedPart is the part of every widget that the operator adds by server-side
	// apply, which leaves the others alone.
	appliedPart = "screw"
)

// Reconcile takes one step towards what the widget shall be. Its own write brings the
// next one. A conflict is an error, after which it is called again.
func (o *operator) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var w Widget
	if err := o.Get(ctx, req.NamespacedName, &w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, o.release(ctx, &w)
	}
	if err := o.ensureConfig(ctx, &w); err != nil {
		return ctrl.Result{}, err
	}
	for _, step := range []func(context.Context, *Widget) (bool, error){o.hold, o.note, o.label, o.applyPart, o.status} {
		if wrote, err := step(ctx, &w); wrote || err != nil {
			return ctrl.Result{}, err
		}
	}
	o.settled(&w)
	return ctrl.Result{}, nil
}

// write writes an object that was changed since base: whole, or what differs.
func (o *operator) write(ctx context.Context, w, base *Widget) error {
	if o.patch {
		return o.Patch(ctx, w, client.MergeFrom(base))
	}
	return o.Update(ctx, w)
}

// hold adds the finalizer.
func (o *operator) hold(ctx context.Context, w *Widget) (bool, error) {
	base := w.deepCopy()
	if !controllerutil.AddFinalizer(w, finalizer) {
		return false, nil
	}
	return true, o.write(ctx, w, base)
}

// note writes a field of the spec.
func (o *operator) note(ctx context.Context, w *Widget) (bool, error) {
	base, note := w.deepCopy(), fmt.Sprintf("%d of %s s", w.Spec.Count, w.Spec.LegacyTimeout)
	if w.Spec.Note == note {
		return false, nil
	}
	w.Spec.Note = note
	return true, o.write(ctx, w, base)
}

// label writes a label, under the condition that nobody else wrote since.
func (o *operator) label(ctx context.Context, w *Widget) (bool, error) {
	if w.Labels[tierLabel] == w.Spec.Tier {
		return false, nil
	}
	base := w.deepCopy()
	metav1.SetMetaDataLabel(&w.ObjectMeta, tierLabel, w.Spec.Tier)
	return true, o.Patch(ctx, w, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

// applyPart adds a part, by server-side apply.
func (o *operator) applyPart(ctx context.Context, w *Widget) (bool, error) {
	want := Part{ID: appliedPart, Weight: w.Spec.LegacyTimeout}
	if slices.Contains(w.Spec.Parts, want) {
		return false, nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"parts": []any{map[string]any{"id": want.ID, "weight": want.Weight}},
	}}}
	u.SetGroupVersionKind(version.WithKind("Widget"))
	u.SetNamespace(w.Namespace)
	u.SetName(w.Name)
	return true, o.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("widgets-parts"), client.ForceOwnership)
}

// status writes the status.
func (o *operator) status(ctx context.Context, w *Widget) (bool, error) {
	ready := Condition{Type: "Ready", Status: "True"}
	if w.Status.Ready == w.Spec.Count && slices.Contains(w.Status.Conditions, ready) {
		return false, nil
	}
	base := w.deepCopy()
	w.Status = WidgetStatus{Ready: w.Spec.Count, Conditions: []Condition{ready}}
	if o.patch {
		return true, o.Status().Patch(ctx, w, client.MergeFrom(base))
	}
	return true, o.Status().Update(ctx, w)
}

// ensureConfig keeps the ConfigMap that the widget owns.
func (o *operator) ensureConfig(ctx context.Context, w *Widget) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, o.Client, config, func() error {
		config.Data = map[string]string{"timeout": w.Spec.LegacyTimeout}
		return controllerutil.SetControllerReference(w, config, o.Scheme())
	})
	return err
}

// release deletes the ConfigMap and lets the widget go.
func (o *operator) release(ctx context.Context, w *Widget) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
	if err := client.IgnoreNotFound(o.Delete(ctx, config)); err != nil {
		return err
	}
	base := w.deepCopy()
	if !controllerutil.RemoveFinalizer(w, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(o.Patch(ctx, w, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})))
}

// settled tells of a widget that is as it shall be, once for each state. Only one
// Reconcile runs at a time.
func (o *operator) settled(w *Widget) {
	state := fmt.Sprintf("%s is settled: %d of %s s, %s", w.Name, w.Spec.Count, w.Spec.LegacyTimeout, w.Spec.Tier)
	if o.told[w.Name] == state {
		return
	}
	o.told[w.Name] = state
	o.say("%s", state)
}
