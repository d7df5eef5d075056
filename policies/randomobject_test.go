package policies

import (
	"reflect"
	"strings"
	"sync"

	"github.com/mixed-version-proxy/mvp/policies/dryrun/kindschema"
	"github.com/mixed-version-proxy/mvp/policies/dryrun/randomobject"
)

// integers are the JSON texts of whole numbers of 64 bits.
var integers = []string{"1", "30", "-7", "9223372036854775807", "-9223372036854775808"}

// fixed are the fields of which not every value has a meaning of its own: 0 shares are
// the default, a timeout is a whole number of 64 bits, and a word that the rules map stands
// for itself in one version only.
func fixed(names string) map[string][]string {
	timeouts := make([]string, len(integers))
	for i, integer := range integers {
		timeouts[i] = `"` + integer + `"`
	}
	mapped := `"ephemeral"`
	if strings.Contains(names, "myapps.example.com/v1beta1") {
		mapped = `"stateless"`
	}
	return map[string][]string{
		"nominalConcurrencyShares": integers,
		"legacyTimeout":            timeouts,
		"requestTimeoutSeconds":    integers,
		"stateManagement":          {mapped, `"persistent"`, `""`, `"Ephemeral"`},
	}
}

var schemas sync.Map // of Go types

// randomObject makes an object of the type of model, that begins with names. Each
// field is there, absent, null where Go has a nil for it, or empty.
func randomObject(seed uint64, names string, model any) []byte {
	t := reflect.TypeOf(model)
	schema, ok := schemas.Load(t)
	if !ok {
		schema, _ = schemas.LoadOrStore(t, kindschema.OfType(t))
	}
	object, err := randomobject.Make(seed, schema.(*kindschema.Schema), names, randomobject.Options{
		Values: fixed(names), Nulls: true, AnyNumber: true,
	})
	if err != nil {
		panic(err) // cannot be: where any number will do, nothing is checked
	}
	return object
}
