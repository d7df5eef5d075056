package dryrun

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestYAMLNumbers holds numbers to the digits that they came with.
func TestYAMLNumbers(t *testing.T) {
	for _, number := range []string{
		"0", "-1", "9007199254740993", "123456789012345678901234567890", "1.0", "1e3", "1E-7",
		"0.1000000000000000055511151231257827", "-0.0", "12345678901234567890.5e-400",
	} {
		got, err := YAML([]byte(`{"count":` + number + `,"items":[` + number + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		if want := "count: " + number + "\nitems:\n- " + number + "\n"; got != want {
			t.Errorf("%s: got %q, want %q", number, got, want)
		}
	}
}

// TestYAMLStrings holds texts, and the names of fields, to staying texts for a reader of
// YAML 1.1, as kubectl is one.
func TestYAMLStrings(t *testing.T) {
	texts := map[string]string{}
	for i, text := range []string{
		"", " ", "on", "y", "No", "null", "~", "true", "1", "1.5", "1e3", "0x1f", "0777", "0o17", "1_000", ".inf", "1:30",
		"2001-01-01", "2001-12-14t21:59:43.10-05:00", "<<", "=", "- a", "a: b", "a #b", "#a", "&a", "*a", "!a", "%a", "@a", "`a",
		"'", `"`, `\`, "{", "[", "a\nb", "a\nb\n", "\n", "  a\nb", "a\n\n\n", "a \nb", "a\tb", "\ta\n", "a\rb", "\x00", "\x7f",
		"\u0085", "\u2028", "\ufeff", "grün", "\U0001f600", "---", "...", "?", ":", "-", strings.Repeat("long words ", 40),
		"#!/bin/sh\nset -e\nif true; then\n\techo \"$1\"\nfi\n",
	} {
		texts[strconv.Itoa(i)+" "+text] = text
		texts[text] = text
	}
	document, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	text, err := YAML(document)
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]string
	if err := yaml.UnmarshalStrict([]byte(text), &back); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if got, ok := back[key]; !ok || got != texts[key] {
			t.Errorf("%q: %q came back as %q", key, texts[key], got)
		}
	}
	if len(back) != len(texts) {
		t.Errorf("%d keys came back of %d", len(back), len(texts))
	}
}
