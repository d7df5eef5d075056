package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/itchyny/gojq"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// The lists and watches of the benchmarks, 20 MB each.
const (
	streamObjects     = 5000
	streamObjectBytes = 4 << 10
)

// plannedAnswer is articleSpec on the way back, in jq.
const plannedAnswer = `rename(.spec.config.requestTimeoutSeconds; .spec.config.legacyTimeout)
	| .spec.config.legacyTimeout |= tostring
	| mapvalue(.spec.stateManagement; "stateless"; "ephemeral")`

// numberedAnswer has a plan that gives up on a number with a fraction in a string.
const numberedAnswer = `rename(.spec.config.requestTimeoutSeconds; .spec.config.legacyTimeout)
	| .spec.config.legacyTimeout |= tonumber
	| mapvalue(.spec.stateManagement; "stateless"; "ephemeral")`

// unplannedAnswer has no plan, and gojq gets two fields.
const unplannedAnswer = `if .spec.config.requestTimeoutSeconds then
	.spec.config.legacyTimeout = "\(.spec.config.requestTimeoutSeconds * 1000)ms" | del(.spec.config.requestTimeoutSeconds) else . end`

// streamCases are the ways in which a list or a watch can be converted.
var streamCases = []struct {
	name, program string
	rules         bool
	was, is       string // what the objects have in the place of something else
}{
	{name: "rules", program: plannedAnswer, rules: true},
	{name: "planned", program: plannedAnswer},
	{
		// What the program names is written with escapes, and stands twice.
		name: "escaped", program: plannedAnswer,
		was: `"requestTimeoutSeconds":30`, is: `"requestTimeout\u0053econds":1,"requestTimeoutSeconds":30`,
	},
	{
		// The plan begins, is undone, and gojq runs the program.
		name: "abandoned", program: numberedAnswer,
		was: `"requestTimeoutSeconds":30`, is: `"requestTimeoutSeconds":"0.5"`,
	},
	{name: "unplanned", program: unplannedAnswer},
	{name: "opaque", program: `with_entries(if .key == "spec" then .value.stateManagement = "ephemeral" else . end)`},
}

// BenchmarkList measures the conversion of lists as [BenchmarkObject] does that of
// objects. The baseline decodes the list, runs the program on each item, and encodes
// the list.
func BenchmarkList(b *testing.B) {
	benchStreams(b, benchList, (*Converter).Answer, decodedList)
}

// BenchmarkWatch is BenchmarkList for as many events of a watch. The baseline decodes
// and encodes one event after the other.
func BenchmarkWatch(b *testing.B) {
	benchStreams(b, benchEvents, (*Converter).Watch, decodedEvents)
}

func benchStreams(
	b *testing.B,
	stream func(item []byte) []byte,
	convert func(c *Converter, w io.Writer, r io.Reader, vars *Vars) error,
	baseline func(b *testing.B, code *gojq.Code, src []byte),
) {
	for _, bb := range streamCases {
		b.Run(bb.name, func(b *testing.B) {
			spec := articleSpec()
			if !bb.rules {
				spec.Rules = nil
				spec.Response = &source.Text{Code: bb.program, Start: source.Pos{File: "p.response.jq", Line: 1, Col: 1}}
				spec.Limits.JQTime = time.Minute // a busy machine may let one of 5,000 programs wait for long
			}
			c, code, src := mustCompile(b, spec), plainCode(b, bb.program), stream(benchItem(b, bb.was, bb.is))
			benchStream(b, src, func() {
				if err := convert(c, io.Discard, bytes.NewReader(src), nil); err != nil {
					b.Fatal(err)
				}
			}, func() { baseline(b, code, src) })
		})
	}
}

// benchItem is an object as a server sends it.
func benchItem(b *testing.B, was, is string) []byte {
	item := benchObject(streamObjectBytes)
	for _, change := range [][2]string{
		{"v1alpha1", "v1beta1"}, {`"legacyTimeout":"30"`, `"requestTimeoutSeconds":30`}, {"ephemeral", "stateless"}, {was, is},
	} {
		if !bytes.Contains(item, []byte(change[0])) {
			b.Fatalf("the object has no %s", change[0])
		}
		item = bytes.ReplaceAll(item, []byte(change[0]), []byte(change[1]))
	}
	return item
}

func benchList(item []byte) []byte {
	list := []byte(`{"apiVersion":"myapps.example.com/v1beta1","items":[`)
	for i := range streamObjects {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, item...)
	}
	return append(list, `],"kind":"CustomResourceList","metadata":{"resourceVersion":"1"}}`...)
}

func benchEvents(item []byte) []byte {
	event := append(append([]byte(`{"type":"ADDED","object":`), item...), "}\n"...)
	return bytes.Repeat(event, streamObjects)
}

// streamsPerBaseline is how many streams are converted for one baseline run.
const streamsPerBaseline = 4

func benchStream(b *testing.B, src []byte, convert, baseline func()) {
	allocations := testing.AllocsPerRun(1, convert)
	var candidate, compared time.Duration
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		start := cpuTime()
		baseline()
		between := cpuTime()
		for range streamsPerBaseline {
			convert()
		}
		compared += between - start
		candidate += cpuTime() - between
	}
	streams := float64(b.N) * streamsPerBaseline
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(compared)*streamsPerBaseline/float64(candidate), "x-gojq")
	b.ReportMetric(float64(len(src))*streams/candidate.Seconds()/1e6, "MB/s")
	b.ReportMetric(float64(candidate)/streams/streamObjects, "ns/object")
	b.ReportMetric(allocations/streamObjects, "allocs/object")
}

func decodedList(b *testing.B, code *gojq.Code, src []byte) {
	var list struct {
		APIVersion string         `json:"apiVersion"`
		Items      []any          `json:"items"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
	}
	if err := json.Unmarshal(src, &list); err != nil {
		b.Fatal(err)
	}
	for i, item := range list.Items {
		out, err := onlyResult(code.Run(item, map[string]any{}, "", ""))
		if err != nil {
			b.Fatal(err)
		}
		list.Items[i] = out
	}
	if err := json.NewEncoder(io.Discard).Encode(list); err != nil {
		b.Fatal(err)
	}
}

func decodedEvents(b *testing.B, code *gojq.Code, src []byte) {
	in, out := json.NewDecoder(bytes.NewReader(src)), json.NewEncoder(io.Discard)
	for {
		var event struct {
			Type   string `json:"type"`
			Object any    `json:"object"`
		}
		err := in.Decode(&event)
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			event.Object, err = onlyResult(code.Run(event.Object, map[string]any{}, "", ""))
		}
		if err == nil {
			err = out.Encode(&event)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
