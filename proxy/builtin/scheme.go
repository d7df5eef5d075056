package builtin

import (
	"reflect"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	flowcontrolv1beta1 "k8s.io/api/flowcontrol/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mixed-version-proxy/mvp/proxy/builtin/autoscalingv2beta1"
)

// Scheme has the Go types of Kubernetes' own kinds: client-go's, CustomResourceDefinitions,
// and those that are not there any more and that are the same as others, in JSON and in
// protobuf. It is not
// to be changed.
var Scheme = newScheme()

// Codecs read and write what Scheme has.
var Codecs = serializer.NewCodecFactory(Scheme)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		panic(err) // client-go registers the same types when it is loaded
	}
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1beta1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	// autoscaling/v2 is what became of v2beta2, and flowcontrol v1beta1 of v1alpha1: their
	// messages have the same fields.
	v2beta2 := schema.GroupVersion{Group: autoscalingv2.GroupName, Version: "v2beta2"}
	s.AddKnownTypeWithName(v2beta2.WithKind("HorizontalPodAutoscaler"), &autoscalingv2.HorizontalPodAutoscaler{})
	s.AddKnownTypeWithName(v2beta2.WithKind("HorizontalPodAutoscalerList"), &autoscalingv2.HorizontalPodAutoscalerList{})
	v1alpha1 := schema.GroupVersion{Group: flowcontrolv1beta1.GroupName, Version: "v1alpha1"}
	s.AddKnownTypes(v1alpha1,
		&flowcontrolv1beta1.FlowSchema{}, &flowcontrolv1beta1.FlowSchemaList{},
		&flowcontrolv1beta1.PriorityLevelConfiguration{}, &flowcontrolv1beta1.PriorityLevelConfigurationList{})
	return s
}

// jsonOnly are the types of kinds that Scheme does not have: they cannot be read or
// written in protobuf.
var jsonOnly = map[schema.GroupVersionKind]reflect.Type{
	{Group: "autoscaling", Version: "v2beta1", Kind: "HorizontalPodAutoscaler"}: reflect.TypeFor[autoscalingv2beta1.HorizontalPodAutoscaler](),
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
