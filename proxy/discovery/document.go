package discovery

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	apidiscoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"
)

// A documentKey names a document by its path without a trailing slash and its
// form.
type documentKey struct {
	path string
	form form
}

// A document is one discovery document. It is written on first use, once for each
// encoding, and may be used by any number of goroutines.
type document struct {
	object   runtime.Object // with kind and apiVersion set; never changed
	v2beta1  bool           // object is a v2 list to be written as v2beta1
	rendered [encodings]rendering

	hashOnce sync.Once
	hash     string

	hashed atomic.Pointer[hashedDocument]
}

type rendering struct {
	once sync.Once
	body []byte
	err  error
}

// body returns the document in encoding e. The result must not be changed.
func (d *document) body(e encoding) ([]byte, error) {
	r := &d.rendered[e]
	r.once.Do(func() {
		object := d.object
		if d.v2beta1 {
			if object, r.err = v2beta1Of(object); r.err != nil {
				return
			}
		}
		r.body, r.err = encode(object, e)
	})
	return r.body, r.err
}

// etag returns the entity tag, which is the same for all encodings, as in
// kube-apiserver: Vary keeps them apart.
func (d *document) etag() (string, error) {
	body, err := d.body(encodeJSON)
	if err != nil {
		return "", err
	}
	d.hashOnce.Do(func() { d.hash = quotedHash(body) })
	return d.hash, nil
}

func quotedHash(body []byte) string { return strconv.Quote(Hash(body)) }

// Hash returns the hash of a document as kube-apiserver writes one in ETags and
// in the URLs of the OpenAPI v3 index: upper-case hexadecimal.
func Hash(document []byte) string { return fmt.Sprintf("%X", sha512.Sum512(document)) }

// encode writes an object as kube-apiserver does: plain JSON ends with a newline,
// indented JSON does not.
func encode(object runtime.Object, e encoding) ([]byte, error) {
	switch e {
	case encodePretty:
		return json.MarshalIndent(object, "", "  ")
	case encodeYAML:
		return yaml.Marshal(object)
	case encodeProtobuf:
		var out bytes.Buffer
		err := protobuf.NewSerializer(nil, nil).Encode(object, &out)
		return out.Bytes(), err
	}
	body, err := json.Marshal(object)
	return append(body, '\n'), err
}

// v2beta1Of returns the same list as v2beta1, which has the same fields.
func v2beta1Of(list runtime.Object) (runtime.Object, error) {
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	out := &apidiscoveryv2beta1.APIGroupDiscoveryList{}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, err
	}
	out.APIVersion = apidiscoveryv2beta1.SchemeGroupVersion.String()
	return out, nil
}
