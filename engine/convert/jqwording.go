package convert

import (
	"reflect"

	"github.com/itchyny/gojq"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// siblings are two fields of one object, of which a program makes the one the other.
type siblings struct{ from, to string }

// wording is what is known of a program's fields by its text alone.
type wording struct {
	names   map[string]bool // of fields that it uses anywhere, and its other texts, which may be such
	renames []siblings
}

// wordingOf is that of the program text, which has been compiled before.
func wordingOf(text *source.Text) wording {
	w := wording{names: map[string]bool{}}
	w.add(reflect.ValueOf(plainQuery(text.Code)))
	delete(w.names, "")
	return w
}

// add goes through a syntax tree of gojq's. A field is named by an index, by a key of an
// object, or by a text.
func (w *wording) add(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			w.add(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			w.add(v.Index(i))
		}
	case reflect.Struct:
		switch node := v.Interface().(type) {
		case gojq.Index:
			w.names[node.Name] = true
		case gojq.ObjectKeyVal:
			w.names[node.Key] = true
		case gojq.String:
			w.names[node.Str] = true
		case gojq.Func:
			w.call(&node)
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				w.add(v.Field(i))
			}
		}
	}
}

// call notes a rename(.from; .to) within one object.
func (w *wording) call(f *gojq.Func) {
	if f.Name != "rename" || len(f.Args) != 2 {
		return
	}
	if from, to := soleField(f.Args[0]), soleField(f.Args[1]); from != "" && to != "" {
		w.renames = append(w.renames, siblings{from, to})
	}
}

// soleField is the name of the field that q is, and nothing else; "" for none.
func soleField(q *gojq.Query) string {
	if q.Term == nil || q.Term.Type != gojq.TermTypeIndex || len(q.Term.SuffixList) > 0 {
		return ""
	}
	return q.Term.Index.Name
}
