package convert

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/itchyny/gojq"

	"github.com/mixed-version-proxy/mvp/engine/source"
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

// plannedProgram is articleSpec in jq.
const plannedProgram = `rename(.spec.config.legacyTimeout; .spec.config.requestTimeoutSeconds)
	| .spec.config.requestTimeoutSeconds |= tointeger
	| mapvalue(.spec.stateManagement; "ephemeral"; "stateless")`

// Programs that gojq has a part in.
const (
	// Two stages have plans, the third does arithmetic on one field.
	mixedProgram = plannedProgram + ` | .spec.config.requestTimeoutSeconds *= 1000`

	// No stage has a plan, and gojq gets two fields.
	unplannedProgram = `if .spec.config.legacyTimeout then
		.spec.config.requestTimeoutSeconds = (.spec.config.legacyTimeout | tointeger) * 1000 | del(.spec.config.legacyTimeout) else . end`

	// No stage has a plan, and gojq gets all of the object.
	opaqueProgram = `with_entries(if .key == "spec" then .value.stateManagement = "stateless" else . end)`
)

func benchSpec(program string) Spec {
	spec := articleSpec()
	spec.Rules = nil
	spec.Request = &source.Text{Code: program, Start: source.Pos{File: "p.request.jq", Line: 1, Col: 1}}
	return spec
}

// BenchmarkObject measures conversions against the same program in gojq between
// encoding/json's decoder and encoder, one after the other in each round, and
// reports how many times as fast they are, by the time that their thread ran. On a
// busy machine only that is worth looking at.
func BenchmarkObject(b *testing.B) {
	for _, bb := range []struct {
		name, baseline string
		spec           Spec
	}{
		{"rules", plannedProgram, articleSpec()},
		{"planned", plannedProgram, benchSpec(plannedProgram)},
		{"mixed", mixedProgram, benchSpec(mixedProgram)},
		{"unplanned", unplannedProgram, benchSpec(unplannedProgram)},
		{"opaque", opaqueProgram, benchSpec(opaqueProgram)},
	} {
		for _, size := range []int{2 << 10, 50 << 10} {
			b.Run(fmt.Sprintf("%s/%d", bb.name, size), func(b *testing.B) {
				benchRatio(b, mustCompile(b, bb.spec), plainCode(b, bb.baseline), benchObject(size))
			})
		}
	}
}

// plainCode compiles a program as anybody would: with the helpers, but neither
// checks nor guards.
func plainCode(b *testing.B, program string) *gojq.Code {
	query, err := gojq.Parse(program)
	if err != nil {
		b.Fatal(err)
	}
	query.FuncDefs = append(prelude(), query.FuncDefs...)
	code, err := gojq.Compile(query, append(guardOptions(), gojq.WithVariables(programVariables))...)
	if err != nil {
		b.Fatal(err)
	}
	return code
}

// roundsPerBaseline is how many conversions are timed together, as one takes so
// much less time than the baseline.
const roundsPerBaseline = 8

func benchRatio(b *testing.B, c *Converter, code *gojq.Code, src []byte) {
	dst := make([]byte, 0, 2*len(src))
	convert := func() {
		if _, err := c.Object(dst, src, ToServer, nil); err != nil {
			b.Fatal(err)
		}
	}
	allocations := testing.AllocsPerRun(20, convert)
	var candidate, baseline time.Duration
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		start := cpuTime()
		decodedRun(b, code, src)
		between := cpuTime()
		for range roundsPerBaseline {
			convert()
		}
		baseline += between - start
		candidate += cpuTime() - between
	}
	rounds := float64(b.N) * roundsPerBaseline
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(baseline)*roundsPerBaseline/float64(candidate), "x-gojq")
	b.ReportMetric(float64(len(src))*rounds/candidate.Seconds()/1e6, "MB/s")
	b.ReportMetric(float64(candidate)/rounds, "ns/object")
	b.ReportMetric(allocations, "allocs/object")
}

// decodedRun is what a conversion is compared with: decode, run, encode.
func decodedRun(b *testing.B, code *gojq.Code, src []byte) {
	var v any
	if err := json.Unmarshal(src, &v); err != nil {
		b.Fatal(err)
	}
	out, err := onlyResult(code.Run(v, map[string]any{}, "", ""))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := json.Marshal(out); err != nil {
		b.Fatal(err)
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
