package oracle_test

import (
	"encoding/json"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/lab/labtest"
	"github.com/mixed-version-proxy/mvp/bench/oracle"
)

// BenchmarkLibrary measures what each conversion of the library costs: an object that a
// client creates, and an answer to it. "decoded" reads and writes the same answers with
// encoding/json, which is the least that a conversion would cost that decodes them.
func BenchmarkLibrary(b *testing.B) {
	labtest.SkipUnlessLab(b) // it needs the same programs as TestLibrary
	o := startOracles(b)
	for _, p := range libraryPairs(b) {
		r, err := o.route(&p)
		if err != nil {
			continue // see noOracle
		}
		b.Run(p.name, func(b *testing.B) {
			clients, stored, err := r.clients(*seed, batch)
			if err != nil {
				b.Fatal(err)
			}
			var sent [][]byte
			for i, a := range stored {
				if a.Err == nil {
					sent = append(sent, clients[i])
				}
			}
			b.Run("up", func(b *testing.B) { benchmark(b, sent, p.request) })
			b.Run("down", func(b *testing.B) { benchmark(b, objectsOf(stored), p.answer) })
			b.Run("decoded", func(b *testing.B) { benchmark(b, objectsOf(stored), decodedAndEncoded) })
		})
	}
}

func objectsOf(answers []oracle.Answer) (objects [][]byte) {
	for _, a := range answers {
		if a.Err == nil {
			objects = append(objects, a.Object)
		}
	}
	return objects
}

func benchmark(b *testing.B, objects [][]byte, f func([]byte) oracle.Answer) {
	var size int
	for _, object := range objects {
		size += len(object)
	}
	b.SetBytes(int64(size / len(objects)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if a := f(objects[i%len(objects)]); a.Err != nil {
			b.Fatal(a.Err)
		}
	}
}

func decodedAndEncoded(object []byte) oracle.Answer {
	var value any
	err := json.Unmarshal(object, &value)
	if err != nil {
		return oracle.Answer{Err: err}
	}
	object, err = json.Marshal(value)
	return oracle.Answer{Object: object, Err: err}
}
