package builtin

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// Scheme has the Go types of Kubernetes' own kinds: client-go's, and those that it does
// not have any more and that are the same as others, in JSON and in protobuf. It is not
// to be changed.
var Scheme = newScheme()

// Codecs read and write what Scheme has.
var Codecs = serializer.NewCodecFactory(Scheme)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		panic(err) // client-go registers the same types when it is loaded
	}
	// autoscaling/v2 is what became of v2beta2: its messages have the same fields.
	v2beta2 := schema.GroupVersion{Group: autoscalingv2.GroupName, Version: "v2beta2"}
	s.AddKnownTypeWithName(v2beta2.WithKind("HorizontalPodAutoscaler"), &autoscalingv2.HorizontalPodAutoscaler{})
	s.AddKnownTypeWithName(v2beta2.WithKind("HorizontalPodAutoscalerList"), &autoscalingv2.HorizontalPodAutoscalerList{})
	return s
}

// PatchType returns an object of a Go type that tells how strategic merge patches of a
// kind merge its lists; nil for what is no kind of Kubernetes' own.
func PatchType(gvk schema.GroupVersionKind) runtime.Object {
	if gvk.Group == autoscalingv2.GroupName && gvk.Version == "v2beta1" {
		// There is no Go type any more. Its lists are replaced whole, as those of the
		// specification are in v2.
		gvk.Version = autoscalingv2.SchemeGroupVersion.Version
	}
	object, err := Scheme.New(gvk)
	if err != nil {
		return nil
	}
	return object
}
