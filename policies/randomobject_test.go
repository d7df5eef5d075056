package policies

import (
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Values that have been lost in conversions: as JSON texts, since it is the text that
// must survive.
var (
	oddStrings = []string{
		`"a"`, `""`, `"true"`, `"1e3"`, `"030"`, `"é"`, `"\u00e9"`, `"\ud83d\ude00"`, `"😀"`, `"\n\t\"\\\/"`, `"\u0000"`, `"\u2028"`, `"a.b/c"`, `"[*]"`, `"$patch"`,
	}
	oddNumbers = []string{
		"0", "1", "-1", "-0", "1e3", "1E+3", "1.0", "0.1000", "9223372036854775807", "-9223372036854775808", "9007199254740993",
		"123456789012345678901234567890", "1000090000", "2147483648",
	}
	integers = []string{"1", "30", "-7", "9223372036854775807", "-9223372036854775808"}
)

// fixed are the fields of which not every value has a meaning of its own: 0 shares are
// the default, a timeout is a whole number of 64 bits, and a word that the rules map stands for
// itself in one version only.
func fixed(name string) (pool []string, quoted bool) {
	switch name {
	case "nominalConcurrencyShares":
		return integers, false
	case "legacyTimeout":
		return integers, true
	case "requestTimeoutSeconds":
		return integers, false
	}
	return nil, false
}

// maker writes random objects of Go types. It keeps the text rather than values.
type maker struct {
	*rand.Rand
	strings.Builder
	server bool
}

// maxNesting is how deep a made object nests; what would be deeper is empty.
const maxNesting = 12

// randomObject makes an object of the type of model, that begins with names. Each
// field is there, absent, null where Go has a nil for it, or empty.
func randomObject(seed uint64, names string, model any) []byte {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 1)), server: strings.Contains(names, "myapps.example.com/v1beta1")}
	m.WriteByte('{')
	m.WriteString(names)
	m.fields(reflect.TypeOf(model), true, 0)
	m.WriteByte('}')
	return []byte(m.String())
}

func (m *maker) pick(pool []string) string { return pool[m.IntN(len(pool))] }

// fields writes the members of a struct, behind others where there are some.
func (m *maker) fields(t reflect.Type, more bool, depth int) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Type == reflect.TypeFor[metav1.TypeMeta](), name == "-", !f.IsExported():
			continue
		case name == "" && (f.Anonymous || options == "inline"):
			more = m.fields(f.Type, more, depth)
			continue
		case m.IntN(3) == 0 && name != "spec":
			continue // absent
		}
		if more {
			m.WriteByte(',')
		}
		more = true
		m.WriteString(m.pick([]string{"", "", "", " ", "\n\t"}) + strconv.Quote(name) + ":")
		m.field(name, f.Type, depth)
	}
	return more
}

func (m *maker) field(name string, t reflect.Type, depth int) {
	if pool, quoted := fixed(name); pool != nil {
		value := m.pick(pool)
		if quoted {
			value = strconv.Quote(value)
		}
		m.WriteString(value)
		return
	}
	if name == "stateManagement" {
		mapped := `"ephemeral"`
		if m.server {
			mapped = `"stateless"`
		}
		m.WriteString(m.pick([]string{mapped, `"persistent"`, `""`, `"Ephemeral"`}))
		return
	}
	m.value(t, depth)
}

// value writes a value of type t.
func (m *maker) value(t reflect.Type, depth int) {
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		m.WriteString(m.pick([]string{`"2026-01-02T03:04:05Z"`, "null"}))
		return
	case reflect.TypeFor[metav1.Duration]():
		m.WriteString(`"1h0m0s"`)
		return
	case reflect.TypeFor[resource.Quantity]():
		m.WriteString(m.pick([]string{`"1Gi"`, `"0.1"`, `"100m"`, "0", "1", "1e3"}))
		return
	case reflect.TypeFor[intstr.IntOrString]():
		m.WriteString(m.pick([]string{"0", "1", "2147483647", `"50%"`, `"http"`, `"1"`}))
		return
	case reflect.TypeFor[metav1.FieldsV1](), reflect.TypeFor[runtime.RawExtension]():
		m.WriteString(m.pick([]string{`{"f:spec":{"f:a":{},".":{}}}`, "{}", "null"}))
		return
	}
	m.kind(t, depth)
}

func (m *maker) kind(t reflect.Type, depth int) {
	nils := t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map
	switch {
	case nils && (m.IntN(8) == 0 || depth > maxNesting):
		m.WriteString("null")
	case t.Kind() == reflect.Pointer:
		m.value(t.Elem(), depth+1)
	case t.Kind() == reflect.Struct:
		m.WriteByte('{')
		m.fields(t, false, depth+1)
		m.WriteByte('}')
	case t == reflect.TypeFor[[]byte]():
		m.WriteString(m.pick([]string{`"AAEC/w=="`, `""`}))
	case t.Kind() == reflect.Slice:
		m.WriteByte('[')
		for i := range m.IntN(3) {
			m.comma(i)
			m.value(t.Elem(), depth+1)
		}
		m.WriteByte(']')
	case t.Kind() == reflect.Map:
		m.WriteByte('{')
		for i := range m.IntN(3) {
			m.comma(i)
			m.WriteString(m.pick([][]string{{`"a"`, `"\u0061b"`}, {`"example.com/b"`, `"é"`}}[i]) + ":")
			m.value(t.Elem(), depth+1)
		}
		m.WriteByte('}')
	case t.Kind() == reflect.Bool:
		m.WriteString(m.pick([]string{"true", "false"}))
	case t.Kind() == reflect.String:
		m.WriteString(m.pick(oddStrings))
	default:
		m.WriteString(m.pick(oddNumbers))
	}
}

func (m *maker) comma(i int) {
	if i > 0 {
		m.WriteByte(',')
	}
}
