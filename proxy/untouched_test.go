package proxy_test

import (
	"bufio"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// untouchedForms are one conversion by rules, by programs that run on the bytes of an
// object, and by programs that gojq has to run.
var untouchedForms = map[string]map[string]string{
	"rules": {"things.yaml": rules},
	"plans": programs,
	"gojq": {
		"things.convert.cel": programs["things.convert.cel"],
		"things.request.jq":  `.spec |= with_entries(if .key == "old" then .key = "new" else . end)`,
		"things.response.jq": `.spec |= with_entries(if .key == "new" then .key = "old" else . end)`,
	},
}

// untouchedValues are what decoding and encoding would write in another way, or lose.
var untouchedValues = map[string]string{
	"largest int64":           `9223372036854775807`,
	"smallest int64":          `-9223372036854775808`,
	"largest uint64":          `18446744073709551615`,
	"no float64":              `9007199254740993`,
	"30 digits":               `123456789012345678901234567890`,
	"30 digits of a fraction": `0.123456789012345678901234567890`,
	"exponent":                `1e3`,
	"exponent with a sign":    `-1.50E+02`,
	"beyond float64":          `1e400`,
	"below float64":           `1e-400`,
	"negative zero":           `-0`,
	"whole float":             `1.0`,
	"float":                   `0.1`,
	"escapes":                 `"\u0041\/\b\f\n\r\t\"\\\u007F\u0000"`,
	"marks of HTML":           `"<a href='&'>"`,
	"line separators":         "\"\u0085\u2028\u2029\\u2028\\u0085\"",
	"surrogate pair":          `"\ud83d\uDE00"`,
	"the same without escape": `"😀"`,
	"lone high surrogate":     `"\ud800"`,
	"lone low surrogate":      `"a\udc00b"`,
	"surrogates exchanged":    `"\ude00\ud83d"`,
	"empty string":            `""`,
	"null":                    `null`,
	"empty array":             `[]`,
	"empty object":            `{}`,
	"keys":                    `{"":0,"b/~c":[null,{"z":null,"a":{}}],"0":false}`,
	"1,000 levels":            strings.Repeat(`{"a":[`, 497) + `[{"b":1.0}]` + strings.Repeat(`]}`, 497), // with those around, in an event
}

// untouchedThing is an object with a value that no policy has to do with, and one that
// is renamed.
func untouchedThing(version, field, value string) string {
	return `{"apiVersion":"acme.io/` + version + `","kind":"Thing","metadata":{"name":"t","resourceVersion":"7","annotations":{"\u0041":"<\u0041"}},` +
		`"spec":{"v":` + value + `,"w":[` + value + `],"` + field + `":1.50}}`
}

func untouchedList(version, item, value string) string {
	return `{"kind":"ThingList","apiVersion":"acme.io/` + version + `","metadata":{"x":` + value + `},"items":[` + item + `,` + item + `]}`
}

// untouchedDiff is the merge patch that a program's conversion makes of one that sets
// spec.x: encoding/json writes it. A null in it would delete the field, so there is none.
func untouchedDiff(value, none string) string {
	if value == "null" {
		return `{"metadata":{"resourceVersion":"7"}` + none + `}`
	}
	value = strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`, "\u2028", `\u2028`, "\u2029", `\u2029`).Replace(value)
	return `{"metadata":{"resourceVersion":"7"},"spec":{"x":` + value + `}}`
}

// What no policy touches arrives as the bytes that were sent, in both directions and
// through each verb.
func TestUntouchedValues(t *testing.T) {
	for form, files := range untouchedForms {
		t.Run(form, func(t *testing.T) {
			reply := ""
			u := record(t, "a", "1.32.13", things, func(request) string { return ok(reply) })
			r := start(t, files, nil, u)
			for name, value := range untouchedValues {
				f := func(method, target, mediaType, body, wantBody, answer, want string) {
					t.Helper()
					u.forget()
					reply = answer
					got := r.do(method, target, mediaType, body)
					if got.code != http.StatusOK || got.body != want {
						t.Errorf("%s: %s answered %d\n%.400s\nwant\n%.400s", name, method, got.code, got.body, want)
					}
					if sent := u.got(); len(sent) == 0 || sent[len(sent)-1].body != wantBody {
						t.Errorf("%s: %s of %.300s came as\n%.2000q\nwant\n%.300q", name, method, body, raws(sent), wantBody)
					}
				}
				const one = oldPath + "/t"
				client, server := untouchedThing("v1beta1", "old", value), untouchedThing("v1", "new", value)
				f("GET", one, "", "", "", server, client)
				f("GET", oldPath, "", "", "", untouchedList("v1", server, value), untouchedList("v1beta1", client, value))
				f("POST", oldPath, "application/json", client, server, server, client)
				f("PUT", one, "application/json", client, server, server, client)

				merge, operations := `{"spec":{"x":`+value+`}}`, `[{"op":"add","path":"/spec/x","value":`+value+`}]`
				wantMerge, wantOperations := merge, operations
				if form != "rules" {
					wantMerge, wantOperations = untouchedDiff(value, ""), untouchedDiff(value, `,"spec":{}`)
				}
				f("PATCH", one, "application/merge-patch+json", merge, wantMerge, server, client)
				f("PATCH", one, "application/json-patch+json", operations, wantOperations, server, client)
			}
		})
	}
}

// A watch passes the values of each event, and a field that is not there stays away.
func TestUntouchedValuesOfEvents(t *testing.T) {
	event := func(object string) string { return `{"type":"MODIFIED","object":` + object + "}\n" }
	names := slices.Sorted(maps.Keys(untouchedValues))
	for form, files := range untouchedForms {
		t.Run(form, func(t *testing.T) {
			u := record(t, "a", "1.32.13", things, func(request) string {
				events := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
					chunked(event(`{"apiVersion":"acme.io/v1","kind":"Thing","metadata":{"name":"t"},"spec":{}}`))
				for _, name := range names {
					events += chunked(event(untouchedThing("v1", "new", untouchedValues[name])))
				}
				return events
			})
			r := start(t, files, nil, u)
			conn, in := r.raw("GET /apis/acme.io/v1beta1/things?watch=1 HTTP/1.1\r\nHost: m\r\n\r\n")
			defer conn.Close()
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			events := bufio.NewReader(resp.Body)
			f := func(name, want string) {
				t.Helper()
				if got, err := events.ReadString('\n'); err != nil || got != event(want) {
					t.Fatalf("%s came as %.400s, %v\nwant %.400s", name, got, err, want)
				}
			}
			f("nothing", `{"apiVersion":"acme.io/v1beta1","kind":"Thing","metadata":{"name":"t"},"spec":{}}`)
			for _, name := range names {
				f(name, untouchedThing("v1beta1", "old", untouchedValues[name]))
			}
		})
	}
}

// kube-apiserver reads what is applied as YAML. What it finds in what MVP sends is what
// it would find in what the client sent, and what it could not read is refused.
func TestUntouchedValuesApplied(t *testing.T) {
	values := maps.Clone(untouchedValues)
	maps.Copy(values, map[string]string{
		"next line":       `"a\Nb"`,
		"delete":          `"\x7f"`,
		"C1 controls":     `"\x80\x84\x86\x9f\xa0"`,
		"noncharacters":   `"\uFFFE\uFFFF\uFFFD\U0001FFFE"`,
		"byte order mark": `"\uFEFFa\uFEFF"`,
		"YAML's escapes":  `"\a\e\v\0\_\L\P\ \t"`,
		"keys of YAML":    `{"a\Nb": 1, ? "` + strings.Repeat("k", 1020) + `" : 1, ? "` + strings.Repeat("k", 1023) + `" : "` + strings.Repeat("v", 2000) + `", ? "` + strings.Repeat("\\x7f", 2000) + `" : {}}`,
		"quotes in keys":  `{? "` + strings.Repeat(`\"`, 1000) + `:\\" : '"\:'}`,
		"octal":           `0o17`,
		"hexadecimal":     `0xFF`,
		"lines":           "\"a\n  b\n\n  c\"",
	})
	for form, files := range untouchedForms {
		t.Run(form, func(t *testing.T) {
			u := record(t, "a", "1.32.13", things, func(request) string { return ok(newThing) })
			r := start(t, files, nil, u)
			for name, value := range values {
				u.forget()
				client, server := untouchedThing("v1beta1", "old", value), untouchedThing("v1", "new", value)
				got := r.do("PATCH", oldPath+"/t?fieldManager=x", "application/apply-patch+yaml", client)
				want, err := yaml.YAMLToJSON([]byte(server))
				if err != nil {
					if got.code != http.StatusBadRequest || !strings.Contains(got.body, "cannot read the body as YAML: yaml: ") || len(u.got()) > 0 {
						t.Errorf("%s, which is no YAML, was answered %d %.300s", name, got.code, got.body)
					}
					continue
				}
				sent := u.only().body
				if read, err := yaml.YAMLToJSON([]byte(sent)); err != nil || string(read) != string(want) {
					t.Errorf("%s was sent as %.300q, in which kube-apiserver reads\n%.300q, %v\nwant\n%.300q", name, sent, read, err, want)
				}
			}
		})
	}
}

// More levels than there may be are refused, and nothing is sent.
func TestTooManyLevels(t *testing.T) {
	deep := untouchedThing("v1beta1", "old", strings.Repeat("[", convert.MaxDepth)+strings.Repeat("]", convert.MaxDepth))
	u := record(t, "a", "1.32.13", things, nil)
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	for method, target := range map[string]string{"POST": oldPath, "PUT": oldPath + "/t"} {
		if got := r.do(method, target, "application/json", deep); got.code != http.StatusBadRequest || !strings.Contains(got.body, "nested too deep") {
			t.Errorf("%s answered %d %.500s", method, got.code, got.body)
		}
	}
	if sent := u.got(); len(sent) > 0 {
		t.Errorf("sent %d requests", len(sent))
	}
}
