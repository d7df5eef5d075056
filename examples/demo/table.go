package demo

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/jsonpath"
)

// table starts a Table of the call's kind.
func (c *call) table(f form, headers bool) *metav1.Table {
	t := &metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: metav1.GroupName + "/" + f.version},
		Rows:     []metav1.TableRow{},
	}
	if !headers {
		return t
	}
	t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{
		Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace.",
	})
	for _, col := range c.columns() {
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{
			Name: col.name, Type: col.typ, Format: col.format, Description: col.description, Priority: col.priority,
		})
	}
	return t
}

// columns are those of the kind, or Age alone for a definition that has none.
// Built-in kinds always end with Age.
func (c *call) columns() []column {
	age := column{name: "Age", typ: "date", path: ".metadata.creationTimestamp", description: "Time since the object was created."}
	switch {
	case c.kind == crdKind, c.kind.custom != nil && len(c.kind.columns) > 0:
		return c.kind.columns
	}
	return append(c.kind.columns[:len(c.kind.columns):len(c.kind.columns)], age)
}

// row is one object in a Table. Which part of the object comes with it is the
// includeObject parameter's affair.
func (c *call) row(f form, shown *unstructured.Unstructured) metav1.TableRow {
	row := metav1.TableRow{Cells: []any{shown.GetName()}}
	for _, col := range c.columns() {
		row.Cells = append(row.Cells, c.cell(col, shown))
	}
	switch metav1.IncludeObjectPolicy(c.request.URL.Query().Get("includeObject")) {
	case metav1.IncludeNone:
	case metav1.IncludeObject:
		row.Object = runtime.RawExtension{Object: shown}
	default:
		row.Object = runtime.RawExtension{Object: &unstructured.Unstructured{Object: partial(f, shown)}}
	}
	return row
}

// cell is the value of a column, nil if the object has none or the path is wrong.
func (c *call) cell(col column, obj *unstructured.Unstructured) any {
	path := jsonpath.New(col.name).AllowMissingKeys(true)
	if err := path.Parse("{" + col.path + "}"); err != nil {
		return nil
	}
	results, err := path.FindResults(obj.Object)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil
	}
	value := results[0][0].Interface()
	if col.typ == "date" && c.kind != crdKind {
		return age(value)
	}
	if col.typ != "string" {
		return value
	}
	var all []string
	for _, result := range results[0] {
		all = append(all, fmt.Sprint(result.Interface()))
	}
	return strings.Join(all, ",")
}

// age is the time since a timestamp as kubectl shows it: "5m".
func age(value any) string {
	text, _ := value.(string)
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t))
}
