package main

import (
	"bytes"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// scheme has every API that kube-apiserver serves, with its conversions and
// defaults. Those of kube-apiserver's own groups come with pools.go's import of their
// fuzzers.
var scheme = legacyscheme.Scheme

func init() {
	apiextensions.Install(scheme)
	apiregistration.Install(scheme)
}

// serializer is kube-apiserver's for JSON. It is strict: what a conversion writes
// into a field that does not exist must not go unnoticed.
var serializer = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Strict: true})

// decoder decodes as kube-apiserver decodes a request or what etcd has: with the
// defaults of the version that the object is in, into its internal form.
var decoder = legacyscheme.Codecs.DecoderToVersion(serializer, runtime.InternalGroupVersioner)

// lenientDecoder is for what a server has, which may be a newer one: fields that this
// release does not know yet are left out.
var lenientDecoder = legacyscheme.Codecs.DecoderToVersion(
	json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{}), runtime.InternalGroupVersioner)

// convert converts object, as from decodes it, to the version to. With defaults, those
// of to are filled in too, as happens to what is read from etcd in that version.
func convert(from runtime.Decoder, object []byte, to schema.GroupVersion, defaults bool) ([]byte, error) {
	internal, _, err := from.Decode(object, nil, nil)
	if err != nil {
		return nil, err
	}
	return encode(internal, to, defaults)
}

func encode(internal runtime.Object, to schema.GroupVersion, defaults bool) ([]byte, error) {
	converted, err := scheme.UnsafeConvertToVersion(internal, to)
	if err != nil {
		return nil, err
	}
	if defaults {
		scheme.Default(converted)
	}
	var b bytes.Buffer
	err = serializer.Encode(converted, &b)
	return b.Bytes(), err
}
