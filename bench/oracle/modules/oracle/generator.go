package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A generator makes random objects. What it makes depends on its seed only.
type generator struct {
	r    *rand.Rand
	fill func(any)

	last     map[string]any // the object that was filled in last
	variants int            // how many are still to be made of it
	share    float64        // of its fields that one of them lacks
}

func newGenerator(seed int64) *generator {
	source := rand.NewSource(seed)
	most := 1 + int(uint64(seed)%3) // elements of a list: with more, objects grow out of hand
	return &generator{r: rand.New(source), fill: filler(fuzzerFuncs(), source, most)}
}

// variants is how many objects are made of one that is filled in, by leaving out some
// of its fields: that costs less than to fill in another, and shows as much.
const variants = 3

// object makes an object of gvk as a client may send it, and what it is in its
// internal form. The latter is nil, and err says why, for one that kube-apiserver
// cannot read.
func (f *generator) object(gvk schema.GroupVersionKind) (object []byte, internal runtime.Object, err error) {
	for ; f.variants > 0; f.variants-- {
		object, err := f.thin(f.last)
		if err != nil {
			return nil, nil, err
		}
		// Not all may be left out: a quantity, for one, must not be "".
		if internal, _, err := decoder.Decode(object, nil, nil); err == nil {
			f.variants--
			return object, internal, nil
		}
	}
	if object, err = f.full(gvk); err == nil {
		f.last, err = tree(object)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a random %s: %w", gvk.Kind, err)
	}
	f.variants = variants
	internal, _, err = decoder.Decode(object, nil, nil)
	return object, internal, err
}

// full makes an object that has all that the API's fuzzers fill in. They know the
// internal form best; the form of the version may have fields that the other has not.
func (f *generator) full(gvk schema.GroupVersionKind) ([]byte, error) {
	version := gvk.GroupVersion()
	if f.r.Intn(2) == 0 {
		version.Version = runtime.APIVersionInternal
	}
	object, err := scheme.New(version.WithKind(gvk.Kind))
	if err != nil {
		return nil, err
	}
	f.fill(object)
	encoded, err := encode(object, gvk.GroupVersion(), false)
	if err != nil || !bytes.Contains(encoded, []byte(`"`+clusterName+`"`)) {
		return encoded, err
	}
	fields, err := tree(encoded)
	if err != nil {
		return nil, err
	}
	return json.Marshal(withoutClusterName(fields))
}

// clusterName was a field of the metadata of every object up to 1.23. No server ever
// kept it, and newer code knows none.
const clusterName = "clusterName"

func withoutClusterName(value any) any {
	switch value := value.(type) {
	case map[string]any:
		delete(value, clusterName)
		for name := range value {
			value[name] = withoutClusterName(value[name])
		}
	case []any:
		for i := range value {
			value[i] = withoutClusterName(value[i])
		}
	}
	return value
}
