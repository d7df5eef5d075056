package source

import (
	"fmt"
	"strings"
)

// maxSuggestBytes bounds the words that are compared, in bytes: the work is the
// product of two lengths, and the names that policies use are far shorter.
const maxSuggestBytes = 64

// minSuggestBytes is how short a word may be that is taken for a misspelling.
const minSuggestBytes = 3

// maxListed is how many known words a message lists.
const maxListed = 16

// Suggest returns what a message about an unknown word ends with: the known word
// that it is likely a misspelling of, all known words if there is none and they
// are few, or "". It starts with "; " unless it is empty.
func Suggest(word string, known []string) string {
	if best := Closest(word, known); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	if len(known) == 0 || len(known) > maxListed {
		return ""
	}
	return "; known are " + strings.Join(known, ", ")
}

// Closest returns the known word that word is likely a misspelling of, or "" if
// it is near none: up to a quarter of its bytes, and always one, may be missing,
// too many, wrong or swapped with their neighbour. Names of one or two bytes are near
// themselves only: any other would be near, too. Case does not count. Of
// several words equally near it returns the first in string order, whatever their
// order in known.
func Closest(word string, known []string) string {
	word = strings.ToLower(word)
	best, least := "", max(1, len(word)/4)+1
	for _, k := range known {
		d := editDistance(word, strings.ToLower(k))
		if d > 0 && min(len(word), len(k)) < minSuggestBytes {
			continue
		}
		if d < least || d == least && best != "" && k < best {
			best, least = k, d
		}
	}
	return best
}

// editDistance returns how many bytes to insert, delete, replace or swap with
// their neighbour make b of a. Words that are too long to compare are as far from
// each other as the longer one is long.
func editDistance(a, b string) int {
	if len(a) > maxSuggestBytes || len(b) > maxSuggestBytes {
		return max(len(a), len(b))
	}
	var before, last, row [maxSuggestBytes + 1]int
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
