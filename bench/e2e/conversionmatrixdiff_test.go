package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/lab/webhook"
)

// unique are the members whose values no two objects share. Only that there is one is
// compared.
var unique = map[string]bool{
	"uid": true, "resourceVersion": true, "creationTimestamp": true, "deletionTimestamp": true,
	"time": true, "continue": true,
}

// uniqueText is what is in no two texts the same.
var uniqueText = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`^([0-9]+m)?[0-9]+s$`), "(age)"}, // in a table
	{regexp.MustCompile(`made-[a-z0-9]{5}`), "made-(name)"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "(uid)"},
	{regexp.MustCompile(`\([0-9]+`), "((version)"},
	// What a strict patch would make of the object. MVP shows the patch (docs/operating.md).
	{regexp.MustCompile(`(?s)Invalid value: "\{.*\}": `), "Invalid value: (object): "},
	// The first bytes of a body that is no object.
	{regexp.MustCompile(` \(\{"apiVersion":.*\)$`), " (body)"},
}

// normalise makes a decoded body comparable with that of another object.
func normalise(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			text, isText := member.(string)
			switch {
			case unique[key] && isText && text != "":
				v[key] = "(unique)"
			case key == "managedFields":
				v[key] = normalManagers(member)
			case key == "kubernetes.io/initial-events-list-blueprint" && isText:
				v[key] = blueprint(text)
			case key == "details":
				v[key] = normalise(member)
				sortCauses(v)
			default:
				v[key] = normalise(member)
			}
		}
	case []any:
		for i, item := range v {
			v[i] = normalise(item)
		}
	case string:
		for _, u := range uniqueText {
			v = u.pattern.ReplaceAllString(v, u.with)
		}
		return v
	}
	return v
}

// blueprint is the list that a bookmark carries in base64, without its group.
func blueprint(text string) any {
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return text
	}
	var list map[string]any
	if err := json.Unmarshal(decoded, &list); err != nil {
		return text
	}
	if apiVersion, ok := list["apiVersion"].(string); ok {
		_, list["apiVersion"], _ = strings.Cut(apiVersion, "/")
	}
	return list
}

// sortCauses puts the causes of a Status into an order: the server has none. Its message,
// which tells the same ones, is put into the order of its words.
func sortCauses(status map[string]any) {
	details, _ := status["details"].(map[string]any)
	causes, _ := details["causes"].([]any)
	message, _ := status["message"].(string)
	if len(causes) < 2 {
		return
	}
	slices.SortFunc(causes, func(a, b any) int { return strings.Compare(shown(a), shown(b)) })
	words := strings.FieldsFunc(message, func(r rune) bool { return strings.ContainsRune(" ,[]", r) })
	slices.Sort(words)
	status["message"] = strings.Join(words, " ")
}

// normalManagers tells who owns which fields in the words of the version that is stored.
//
// Managers of a server that serves both versions own fields of the version that they
// wrote in. Through MVP they write in the one version that there is, and what they own is
// passed as data: the fields are the same, under their names in that version. So the
// server's are translated here, and then must be equal.
func normalManagers(v any) any {
	entries, _ := v.([]any)
	entries = slices.DeleteFunc(entries, func(entry any) bool {
		return entry.(map[string]any)["manager"] == "api-priority-and-fairness-config-consumer-v1" // comes when it likes
	})
	for _, entry := range entries {
		entry := entry.(map[string]any)
		entry["time"] = "(unique)"
		fields, _ := entry["fieldsV1"].(map[string]any)
		switch entry["apiVersion"] {
		case "GROUP/" + webhook.Old:
			entry["apiVersion"] = "GROUP/" + webhook.New
			newNames(fields)
		case "GROUP/v1beta3": // of Kubernetes' own kinds, whose fields have the same names
			entry["apiVersion"] = "GROUP/v1"
		}
		// Who creates an object that only the newer version has owns it, too.
		for _, parent := range []string{"f:contact", "f:scaling"} {
			spec := memberOf(fields, "f:spec")
			if p := memberOf(spec, parent); p != nil {
				if delete(p, "."); len(p) == 0 {
					delete(spec, parent)
				}
			}
		}
	}
	slices.SortStableFunc(entries, func(a, b any) int { return strings.Compare(managerKey(a), managerKey(b)) })
	return entries
}

func managerKey(entry any) string {
	e := entry.(map[string]any)
	return fmt.Sprint(e["manager"], e["operation"], e["subresource"])
}

// newNames translates the fields of a manager from the older version's names.
func newNames(fields map[string]any) {
	spec, status := memberOf(fields, "f:spec"), memberOf(fields, "f:status")
	carry(spec, "f:timeout", spec, "f:requestTimeoutSeconds")
	for field, parent := range map[string]string{"f:owner": "f:contact", "f:replicas": "f:scaling"} {
		if _, ok := spec[field]; ok {
			spec[parent] = map[string]any{}
			carry(spec, field, memberOf(spec, parent), field)
		}
	}
	for _, item := range memberOf(spec, "f:endpoints") {
		if item, ok := item.(map[string]any); ok {
			carry(item, "f:number", item, "f:port")
		}
	}
	carry(status, "f:state", status, "f:phase")
}

func memberOf(object map[string]any, key string) map[string]any {
	member, _ := object[key].(map[string]any)
	return member
}

func carry(from map[string]any, key string, to map[string]any, as string) {
	if v, ok := from[key]; ok {
		delete(from, key)
		to[as] = v
	}
}

// compared is where two values differ.
type compared struct {
	at        string // a dotted path
	got, want any
}

func (d compared) String() string {
	return fmt.Sprintf("%s\n  got  %s\n  want %s", d.at, shown(d.got), shown(d.want))
}

func shown(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// compare finds where got is not want.
func compare(at string, got, want any) []compared {
	g, isObject := got.(map[string]any)
	w, bothObjects := want.(map[string]any)
	if isObject && bothObjects && shown(g["kind"]) == shown(w["kind"]) {
		var found []compared
		for _, key := range keysOf(g, w) {
			gv, inGot := g[key]
			wv, inWant := w[key]
			if inGot != inWant {
				found = append(found, compared{at + "." + key, gv, wv})
				continue
			}
			found = append(found, compare(at+"."+key, gv, wv)...)
		}
		return found
	}
	gl, isList := got.([]any)
	wl, bothLists := want.([]any)
	if isList && bothLists && len(gl) == len(wl) {
		var found []compared
		for i := range gl {
			found = append(found, compare(fmt.Sprintf("%s.%d", at, i), gl[i], wl[i])...)
		}
		return found
	}
	if shown(got) == shown(want) {
		return nil
	}
	return []compared{{at, got, want}}
}

func keysOf(objects ...map[string]any) []string {
	var keys []string
	for _, o := range objects {
		for key := range o {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// A difference is one between MVP and a server of both versions that is right.
type difference struct {
	cells string // path.Match on their names
	side  string // which of MVP's, "" for all
	at    string // path.Match on the place
	why   string
}

type allowances struct {
	right []difference
	used  []bool
}

func newAllowances(right []difference) *allowances {
	return &allowances{right: right, used: make([]bool, len(right))}
}

// check compares what MVP answered to a cell with what it should.
func (d *allowances) check(t *testing.T, cell, side string, got, want map[string]any) {
	t.Helper()
	for _, found := range compare("", got, want) {
		if !d.isRight(cell, side, strings.TrimPrefix(found.at, ".")) {
			t.Errorf("%s through mvp by %s: %s", cell, side, found)
		}
	}
}

func (d *allowances) isRight(cell, side, at string) bool {
	right := false
	for i, known := range d.right {
		if matches(known.cells, cell) && (known.side == "" || known.side == side) && matches(known.at, at) {
			d.used[i], right = true, true
		}
	}
	return right
}

// matches is path.Match in which * is any text.
func matches(pattern, text string) bool {
	ok, err := path.Match(pattern, strings.ReplaceAll(text, "/", "|"))
	return err == nil && ok
}

// unused tells of allowances that are none any more.
func (d *allowances) unused(t *testing.T) {
	t.Helper()
	if t.Failed() {
		return // what has failed may have used none
	}
	for i, used := range d.used {
		if !used {
			t.Errorf("no cell differs as the table of differences says any more: %+v", d.right[i])
		}
	}
}
