package engine

import (
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Conflicts says of policies that come later what Compile would say of all together.
func TestConflicts(t *testing.T) {
	named := func(name, origin string, change func(*Policy)) Policy {
		p := Policy{Name: name, Origin: origin, Convert: conversion("v1", "v2"), Pos: source.Pos{File: name}}
		p.Convert.Pos = p.Pos
		if change != nil {
			change(&p)
		}
		return p
	}
	always := func(p *Policy) { p.When = WhenAlways }
	match := func(code string) func(*Policy) { return func(p *Policy) { p.Match = textOf(code) } }
	f := func(there, more Policy, want string) {
		t.Helper()
		got := Conflicts([]Policy{there}, []Policy{more}).Error()
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if _, err := Compile([]Policy{there, more}); (err == nil) != (want == "") {
			t.Errorf("Conflicts says %q, Compile says %v", got, err)
		}
	}

	const taken = `already converts example.com/v1 widgets; give the two different matches, or remove one`
	f(named("b", OriginFile, nil), named("a", OriginObject, nil), `a: policy "b" at b `+taken)
	f(named("b", OriginObject, nil), named("a", OriginObject, nil), `a: policy "b" at b `+taken) // though a is before b
	f(named("a", OriginObject, match("true")), named("b", OriginObject, match("true")), `b: policy "a" at a `+taken)
	f(named("a", OriginObject, match("true")), named("b", OriginObject, match("false")), "")
	f(named("a", OriginObject, match("true")), named("b", OriginObject, nil), "")
	f(named("a", OriginObject, nil), named("b", OriginObject, match("true")), `b: policy "a" at a `+taken)
	f(named("a", OriginFile, nil), named("b", OriginObject, always), "") // it converts what is served
	f(named("a", OriginFile, always), named("b", OriginObject, nil), `b: policy "a" at a `+taken)
	f(named("a", OriginLibrary, nil), named("b", OriginObject, nil), "") // which it replaces
	f(named("a", OriginFile, func(p *Policy) { p.Audit = true }), named("b", OriginObject, nil), "")
	f(named("a", OriginFile, nil), named("b", OriginObject, func(p *Policy) { p.Audit = true }), "")
	f(named("a", OriginFile, nil), named("b", OriginObject, func(p *Policy) { p.Convert = conversion("v3", "v2") }), "")
}
