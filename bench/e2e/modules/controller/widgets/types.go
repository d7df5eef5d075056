package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// version is the one that this operator was written for. It has never heard of a newer
// one, nor of the fields that came with it.
var version = schema.GroupVersion{Group: "shop.example.com", Version: "v1alpha1"}

// Widget is a widget of v1alpha1.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec,omitempty"`
	Status WidgetStatus `json:"status,omitempty"`
}

// WidgetSpec is what a widget shall be.
type WidgetSpec struct {
	LegacyTimeout string `json:"legacyTimeout,omitempty"`
	Count         int    `json:"count,omitempty"`
	Tier          string `json:"tier,omitempty"`
	Note          string `json:"note,omitempty"`
	Parts         []Part `json:"parts,omitempty"`
}

// Part is a part of a widget, known by its ID.
type Part struct {
	ID     string `json:"id"`
	Weight string `json:"weight,omitempty"`
}

// WidgetStatus is what a widget is.
type WidgetStatus struct {
	Ready      int         `json:"ready,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
}

// Condition is True, False or Unknown.
type Condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

// WidgetList is a list of widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}

// DeepCopyObject makes a copy that shares nothing.
func (w *Widget) DeepCopyObject() runtime.Object { return w.deepCopy() }

func (w *Widget) deepCopy() *Widget {
	c := *w
	w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Parts = append([]Part(nil), w.Spec.Parts...)
	c.Status.Conditions = append([]Condition(nil), w.Status.Conditions...)
	return &c
}

// DeepCopyObject makes a copy that shares nothing.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = nil
	for _, w := range l.Items {
		c.Items = append(c.Items, *w.deepCopy())
	}
	return &c
}

// newScheme knows Kubernetes' own kinds and widgets.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		return nil, err
	}
	builder := &scheme.Builder{GroupVersion: version}
	return s, builder.Register(&Widget{}, &WidgetList{}).AddToScheme(s)
}
