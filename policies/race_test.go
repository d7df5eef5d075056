//go:build race

package policies

// raced is whether the race detector runs, which makes everything ten times slower.
const raced = true
