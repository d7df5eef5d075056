package proxy

import (
	"slices"
	"testing"
)

// What a policy prefers goes first, then what the guard does, then what is not in doubt.
func TestRank(t *testing.T) {
	ranked := []rankedServer{
		{score: 1, guard: 31, doubt: 1},
		{score: 1, guard: 32, doubt: 1},
		{score: 2, guard: 31, doubt: 1},
		{score: 1, guard: 31, doubt: 0},
	}
	slices.SortFunc(ranked, func(a, b rankedServer) int { return a.compare(&b) })
	want := []rankedServer{
		{score: 2, guard: 31, doubt: 1},
		{score: 1, guard: 32, doubt: 1},
		{score: 1, guard: 31, doubt: 0},
		{score: 1, guard: 31, doubt: 1},
	}
	if !slices.Equal(ranked, want) {
		t.Errorf("got  %+v\nwant %+v", ranked, want)
	}
}
