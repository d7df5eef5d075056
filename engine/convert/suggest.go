package convert

import (
	"fmt"
	"strings"
)

// suggest returns what to use instead of an unknown word: the nearest of known,
// or all of them when they are few and none is near.
func suggest(word string, known []string) string {
	const few = 8
	best, least := "", len(word)/3+2
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("; did you mean %q?", best)
	case len(known) <= few:
		return "; known are " + strings.Join(known, ", ")
	default:
		return ""
	}
}

// longestSuggested bounds the words that are compared, in bytes: the names we
// know are shorter.
const longestSuggested = 40

// distance is how many insertions, deletions and replacements of bytes make a
// out of b.
func distance(a, b string) int {
	if len(a) > longestSuggested || len(b) > longestSuggested {
		return longestSuggested
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
