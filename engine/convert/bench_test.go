package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

// benchObject is a custom resource of about size bytes, the way a server sends
// it: most of it is what no rule names.
func benchObject(size int) []byte {
	var b strings.Builder
	b.WriteString(`{"apiVersion":"myapps.example.com/v1alpha1","kind":"CustomResource","metadata":{"name":"a","managedFields":[`)
	for i := 0; b.Len() < size/2; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:config":{"f:key-%d":{},".":{}}}},"manager":"kubectl-%d"}`, i, i)
	}
	b.WriteString(`]},"spec":{"config":{"legacyTimeout":"30"},"stateManagement":"ephemeral","containers":[`)
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"container-%d","image":"registry.example.com/team/image:v1.%d","args":["--port=80%d","-v"],"cpu":0.5}`, i, i, i)
	}
	b.WriteString(`]}}`)
	return []byte(b.String())
}

const benchProgram = `rename(.spec.config.legacyTimeout; .spec.config.requestTimeoutSeconds)
	| .spec.config.requestTimeoutSeconds |= tointeger
	| mapvalue(.spec.stateManagement; "ephemeral"; "stateless")`

func BenchmarkObject(b *testing.B) {
	rules := mustCompile(b, articleSpec())
	spec := jqSpec(benchProgram, "")
	spec.From, spec.To = articleSpec().From, articleSpec().To
	jq := mustCompile(b, spec)
	for _, size := range []int{2 << 10, 50 << 10} {
		src := benchObject(size)
		for _, bb := range []struct {
			name string
			c    *Converter
		}{{"rules", rules}, {"jq", jq}} {
			b.Run(fmt.Sprintf("%s/%d", bb.name, size), func(b *testing.B) {
				b.SetBytes(int64(len(src)))
				b.ReportAllocs()
				dst := make([]byte, 0, 2*len(src))
				for b.Loop() {
					if _, err := bb.c.Object(dst, src, ToServer, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		// What the rules save: decode, run the program alone, encode.
		b.Run(fmt.Sprintf("encoding-json+gojq/%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			vars := []any{map[string]any{}, "", ""}
			for b.Loop() {
				var v any
				if err := json.Unmarshal(src, &v); err != nil {
					b.Fatal(err)
				}
				out, err := onlyResult(jq.request.code.Run(v, vars...))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := json.Marshal(out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAnswer(b *testing.B) {
	c := mustCompile(b, articleSpec())
	item := benchObject(4 << 10)
	item = bytes.ReplaceAll(item, []byte("v1alpha1"), []byte("v1beta1"))
	list := []byte(`{"apiVersion":"myapps.example.com/v1beta1","items":[`)
	for i := range 500 {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, item...)
	}
	list = append(list, `],"kind":"CustomResourceList"}`...)
	b.SetBytes(int64(len(list)))
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Answer(io.Discard, bytes.NewReader(list), nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestObjectAllocations holds that converting by rules allocates nothing for
// what it passes: neither for fields nor for bytes.
func TestObjectAllocations(t *testing.T) {
	c := mustCompile(t, articleSpec())
	for _, size := range []int{1 << 10, 100 << 10} {
		src := benchObject(size)
		dst := make([]byte, 0, 2*len(src))
		allocations := testing.AllocsPerRun(100, func() {
			if _, err := c.Object(dst, src, ToServer, nil); err != nil {
				t.Fatal(err)
			}
		})
		if allocations > 4 {
			t.Errorf("%v allocations for %d bytes", allocations, len(src))
		}
	}
}
