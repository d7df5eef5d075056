package randomobject

import (
	"encoding/json"
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/kube-openapi/pkg/validation/strfmt"

	"github.com/mixed-version-proxy/mvp/policies/dryrun/kindschema"
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
	integers   = []string{"0", "1", "-1", "30", "-7", "443", "2147483647", "-2147483648", "2147483648", "9007199254740993", "9223372036854775807", "-9223372036854775808"}
	fractions  = []string{"0.5", "0.1000", "1e3", "-2.5", "1.0"}
	numerals   = []string{`"30"`, `"0"`, `"-7"`, `"1"`, `"2147483648"`} // texts that a policy may make numbers of
	ints       = []string{"0", "1", "2147483647", `"50%"`, `"http"`, `"1"`}
	quantities = []string{`"1Gi"`, `"0.1"`, `"100m"`, "0", "1", "1e3"}
	anyObjects = []string{`{"f:spec":{"f:a":{},".":{}}}`, "{}", `{"a":[1,{"b":null}]}`}
	anything   = append([]string{`"a"`, "1", "true", "[]"}, anyObjects...)

	mapKeys = [][]string{{`"a"`, `"\u0061b"`}, {`"example.com/b"`, `"é"`}}
)

// formatted are texts of the formats that a CustomResourceDefinition may ask for.
var formatted = map[string][]string{
	"date-time": {`"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05.123456Z"`},
	"date":      {`"2026-01-02"`},
	"duration":  {`"1h0m0s"`, `"5m30s"`},
	"byte":      {`"AAEC/w=="`, `""`},
	"email":     {`"a@example.com"`},
	"hostname":  {`"a.example.com"`},
	"ipv4":      {`"192.0.2.1"`},
	"ipv6":      {`"2001:db8::1"`},
	"cidr":      {`"192.0.2.0/24"`, `"2001:db8::/32"`},
	"mac":       {`"00:00:5e:00:53:01"`},
	"uri":       {`"https://example.com/a?b=c"`},
	"uuid":      {`"6ba7b810-9dad-11d1-80b4-00c04fd430c8"`},
	"password":  {`"a"`},
	"quantity":  quantities,
}

// text writes a text. One that must look in a certain way is taken from the pools if it
// does, and else made of the pattern, or as long as it has to be.
func (m *maker) text(s *kindschema.Schema) {
	pool := oddStrings
	switch {
	case formatted[s.Format] != nil && s.Pattern == "":
		pool = formatted[s.Format]
	case m.opts.AnyNumber: // of untyped texts, none is a number in earnest
	case len(m.opts.Words) > 0 && m.IntN(3) == 0:
		pool = quoted(m.opts.Words)
	case m.IntN(3) == 0:
		pool = numerals
	}
	for range 3 {
		if text := pick(m, pool); fits(s, text) {
			m.WriteString(text)
			return
		}
	}
	text := strconv.Quote("a")
	if s.Pattern != "" {
		text = m.ofPattern(s.Pattern)
	}
	if length := utf8.RuneCountInString(unquoted(text)); s.MinLength != nil && int64(length) < *s.MinLength {
		text = strconv.Quote(unquoted(text) + strings.Repeat("a", int(min(*s.MinLength-int64(length), 1<<16))))
	}
	m.WriteString(text)
}

func quoted(words []string) []string {
	texts := make([]string, len(words))
	for i, word := range words {
		text, err := json.Marshal(word)
		if err != nil {
			text = []byte(`""`) // cannot be: of a string
		}
		texts[i] = string(text)
	}
	return texts
}

func unquoted(text string) string {
	var s string
	if json.Unmarshal([]byte(text), &s) != nil {
		return ""
	}
	return s
}

// fits reports whether the text, in JSON, is one that s allows.
func fits(s *kindschema.Schema, text string) bool {
	plain := unquoted(text)
	length := int64(utf8.RuneCountInString(plain))
	if s.MinLength != nil && length < *s.MinLength || s.MaxLength != nil && length > *s.MaxLength {
		return false
	}
	if s.Format != "" && strfmt.Default.ContainsName(s.Format) && !strfmt.Default.Validates(s.Format, plain) {
		return false
	}
	if s.Pattern == "" {
		return true
	}
	re, err := regexp.Compile(s.Pattern)
	return err == nil && re.MatchString(plain)
}

// ofPattern makes a text that the regular expression matches, in JSON.
func (m *maker) ofPattern(pattern string) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return `""`
	}
	var b strings.Builder
	m.matching(&b, re.Simplify())
	text, err := json.Marshal(b.String())
	if err != nil {
		return `""` // cannot be: of a string
	}
	return string(text)
}

// matching writes what re matches.
func (m *maker) matching(b *strings.Builder, re *syntax.Regexp) {
	repeat := func(n int) {
		for range n {
			m.matching(b, re.Sub[0])
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		at := 2 * m.IntN(len(re.Rune)/2)
		low, high := re.Rune[at], min(re.Rune[at+1], re.Rune[at]+25)
		b.WriteRune(low + rune(m.IntN(int(high-low)+1)))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('a')
	case syntax.OpCapture:
		repeat(1)
	case syntax.OpStar:
		repeat(m.IntN(3))
	case syntax.OpPlus:
		repeat(1 + m.IntN(3))
	case syntax.OpQuest:
		repeat(m.IntN(2))
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			m.matching(b, sub)
		}
	case syntax.OpAlternate:
		m.matching(b, pick(m, re.Sub))
	}
}

// number writes a number within the bounds.
func (m *maker) number(s *kindschema.Schema) {
	if m.opts.AnyNumber {
		m.WriteString(pick(m, oddNumbers))
		return
	}
	least, most := bounds(s)
	pool := integers
	if s.Type == "number" && m.IntN(2) == 0 {
		pool = fractions
	}
	for range 3 {
		text := pick(m, pool)
		if f, err := strconv.ParseFloat(text, 64); err == nil && f >= least && f <= most {
			m.WriteString(text)
			return
		}
	}
	whole := least
	if span := most - least; span >= 1 {
		whole += float64(m.IntN(int(min(span, 100)) + 1))
	}
	m.WriteString(strconv.FormatFloat(whole, 'f', -1, 64))
}

// bounds are the least and the largest number that s allows. Where it says nothing of
// one, the other is in reach.
func bounds(s *kindschema.Schema) (least, most float64) {
	least, most = math.Inf(-1), math.Inf(1)
	if s.Format == "int32" {
		least, most = math.MinInt32, math.MaxInt32
	}
	step := 1.0
	if s.Type == "number" {
		step = 0.125
	}
	if s.Minimum != nil {
		least = *s.Minimum
		if s.ExclusiveMinimum {
			least += step
		}
	}
	if s.Maximum != nil {
		most = *s.Maximum
		if s.ExclusiveMaximum {
			most -= step
		}
	}
	if math.IsInf(least, -1) && !math.IsInf(most, 1) {
		return math.Min(most, 0) - 100, most
	}
	return least, most
}

func (m *maker) intOrString(s *kindschema.Schema) {
	for range 10 {
		text := pick(m, ints)
		if text[0] == '"' && fits(s, text) {
			m.WriteString(text)
			return
		}
		if text[0] != '"' {
			m.number(s)
			return
		}
	}
	m.number(s)
}
