package convert

import (
	"strings"
	"testing"
)

// types is a schema as a table.
type types map[string]Type

func (s types) TypeAt(path []string) Type { return s[strings.Join(path, ".")] }

func TestSchemas(t *testing.T) {
	spec := articleSpec()
	spec.Rules = append(spec.Rules,
		Rule{Action: EnsureFieldExistence, Path: "spec.minAvailable", HasDefault: true, DefaultValue: "1"},
		Rule{Action: Rename, Path: "spec.l[*].old", TargetPath: "spec.l[*].mid"},
		Rule{Action: Rename, Path: "spec.l[*].mid", TargetPath: "spec.l[*].new"},
		Rule{Action: Modify, Path: "spec.flag", HasMatch: true, MatchValue: "on", HasReplace: true, ReplaceValue: "true"},
	)
	plain := mustCompile(t, spec)
	client := types{"spec.config.legacyTimeout": TypeString, "spec.l.*.old": TypeString, "spec.minAvailable": TypeIntOrString}
	server := types{"spec.minAvailable": TypeIntOrString, "spec.l.*.new": TypeInteger, "spec.flag": TypeBoolean}
	known := plain.WithSchemas(client, server)
	f := func(c *Converter, dir Direction, in, want string) {
		t.Helper()
		got, err := c.Object(nil, []byte(in), dir, nil)
		if err != nil || string(got) != want {
			t.Errorf("%s\n got %s, %v\nwant %s", in, got, err, want)
		}
	}

	// A value that a rule writes takes the server's type.
	f(plain, ToServer, `{"spec":{}}`, `{"spec":{"minAvailable":"1"}}`)
	f(known, ToServer, `{"spec":{}}`, `{"spec":{"minAvailable":1}}`)
	f(known, ToServer, `{"spec":{"flag":"on","minAvailable":"1"}}`, `{"spec":{"flag":true,"minAvailable":"1"}}`)
	f(known, ToClient, `{"spec":{"flag":true}}`, `{"spec":{"flag":"on"}}`)

	// The way back restores the client's type.
	f(plain, ToClient, `{"spec":{"config":{"requestTimeoutSeconds":30}}}`, `{"spec":{"config":{"legacyTimeout":30}}}`)
	f(known, ToClient, `{"spec":{"config":{"requestTimeoutSeconds":30}}}`, `{"spec":{"config":{"legacyTimeout":"30"}}}`)
	f(known, ToClient, `{"spec":{"config":{"requestTimeoutSeconds":null}}}`, `{"spec":{"config":{"legacyTimeout":null}}}`)

	// Through two renames, and only where the value has an equal of that type.
	f(known, ToServer, `{"spec":{"l":[{"old":"7"},{"old":"x"}],"minAvailable":1}}`, `{"spec":{"l":[{"new":7},{"new":"x"}],"minAvailable":1}}`)
	f(known, ToClient, `{"spec":{"l":[{"new":7},{"new":[]}]}}`, `{"spec":{"l":[{"old":"7"},{"old":[]}]}}`)

	// Where both versions have one type, a value of another is the client's mistake, which
	// the server tells.
	same := plain.WithSchemas(types{"spec.l.*.old": TypeInteger}, server)
	f(same, ToServer, `{"spec":{"l":[{"old":"7"}]}}`, `{"spec":{"l":[{"new":"7"}],"minAvailable":1}}`)

	// The original is as it was.
	f(plain, ToServer, `{"spec":{}}`, `{"spec":{"minAvailable":"1"}}`)

	// No schema at all is no schema.
	f(known.WithSchemas(nil, nil), ToClient, `{"spec":{"config":{"requestTimeoutSeconds":30}}}`, `{"spec":{"config":{"legacyTimeout":30}}}`)
}

func TestCoerce(t *testing.T) {
	f := func(raw string, typ Type, want string) {
		t.Helper()
		got, ok := appendCoerced(nil, []byte(raw), typ)
		if !ok {
			got = []byte("no")
		}
		if string(got) != want {
			t.Errorf("%s as %s is %s, want %s", raw, typ, got, want)
		}
	}

	f(`"30"`, TypeInteger, `30`)
	f(`"-0"`, TypeInteger, `no`) // it would come back as "0"
	f(`"007"`, TypeInteger, `no`)
	f(`"-7"`, TypeInteger, `-7`)
	f(`3.0`, TypeInteger, `3`)
	f(`"1e3"`, TypeInteger, `no`)
	f(`1e3`, TypeInteger, `1000`)
	f(`9223372036854775807.0`, TypeInteger, `9223372036854775807`)
	f(`-9223372036854775808.0`, TypeInteger, `-9223372036854775808`)
	f(`9223372036854775808.0`, TypeInteger, `no`)
	f(`1e999999999999`, TypeInteger, `no`)
	f(`0e999999999999`, TypeInteger, `0`)
	f(`1e-999999999999`, TypeInteger, `no`)
	f(`123456789012345678901234567890`, TypeInteger, `123456789012345678901234567890`) // the server's to judge
	f(`3.5`, TypeInteger, `no`)
	f(`"030"`, TypeInteger, `no`)
	f(`" 3"`, TypeInteger, `no`)
	f(`"soon"`, TypeInteger, `no`)
	f(`""`, TypeInteger, `no`)
	f(`true`, TypeInteger, `no`)
	f(`null`, TypeInteger, `null`)
	f(`"3.50"`, TypeNumber, `3.50`)
	f(`"NaN"`, TypeNumber, `no`)
	f(`"true"`, TypeBoolean, `true`)
	f(`"\u0074rue"`, TypeBoolean, `true`)
	f(`false`, TypeBoolean, `false`)
	f(`"yes"`, TypeBoolean, `no`)
	f(`1`, TypeBoolean, `no`)
	f(`1.50`, TypeString, `"1.50"`)
	f(`true`, TypeString, `"true"`)
	f(`{}`, TypeString, `no`)
}
