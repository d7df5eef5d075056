package main

import (
	"math/rand"
	"sync"

	corev1 "k8s.io/api/core/v1"
	schemas "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/fuzzer"
	schemav1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	schemav1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	codecs "k8s.io/apimachinery/pkg/runtime/serializer"
	api "k8s.io/kubernetes/pkg/api/testing" // installs the API groups too
	"k8s.io/kubernetes/pkg/apis/core"
)

// fuzzerFuncs are the API's own, but that the parts of objects which are large and
// which no conversion looks into come from pools, where most are small: otherwise the
// time would go into making and converting them.
var fuzzerFuncs = sync.OnceValue(func() fuzzer.FuzzerFuncs {
	own := fuzzer.MergeFuzzerFuncs(api.FuzzerFuncs, apiextensions.Funcs)
	fill := filler(own, rand.NewSource(1), 1)
	meta := valuesOf(fill, smallMeta)
	templates := valuesOf(fill, func(t *core.PodTemplateSpec) {
		smallMeta(&t.ObjectMeta)
		t.Spec = core.PodSpec{Containers: []core.Container{{Name: t.Name, Image: t.Name}}}
	})
	claims := valuesOf(fill, func(c *core.PersistentVolumeClaim) {
		smallMeta(&c.ObjectMeta)
		c.Status = core.PersistentVolumeClaimStatus{}
	})
	props := valuesOf(fill, func(p *schemas.JSONSchemaProps) {
		*p = schemas.JSONSchemaProps{Type: "object", Description: p.Description, XPreserveUnknownFields: p.XPreserveUnknownFields}
	})
	pools := []any{
		pool(meta),
		pool(templates), pool(converted[corev1.PodTemplateSpec](templates)),
		pool(claims), pool(converted[corev1.PersistentVolumeClaim](claims)),
		pool(props), pool(converted[schemav1beta1.JSONSchemaProps](props)), pool(converted[schemav1.JSONSchemaProps](props)),
	}
	return fuzzer.MergeFuzzerFuncs(own, func(codecs.CodecFactory) []any { return pools })
})

// smallMeta leaves what clients write.
func smallMeta(m *metav1.ObjectMeta) {
	*m = metav1.ObjectMeta{Name: m.Name, Labels: m.Labels, Annotations: m.Annotations}
}

// values are the different ones that a pool has.
type values[T any] [64]T

// pool returns a fuzzer function that fills in one of v.
func pool[T any](v values[T]) func(*T, random) {
	return func(value *T, r random) { *value = v[r.Intn(len(v))] }
}

// valuesOf fills in values, and makes all but every eighth small.
func valuesOf[T any](fill func(any), small func(*T)) (v values[T]) {
	for i := range v {
		fill(&v[i])
		if i%8 > 0 {
			small(&v[i])
		}
	}
	return v
}

// converted are the values of from in another version.
func converted[To, From any](from values[From]) (v values[To]) {
	for i := range v {
		if err := scheme.Convert(&from[i], &v[i], nil); err != nil {
			panic(err) // of what the API's own fuzzers make
		}
	}
	return v
}
