package engine

// closest returns the candidate most like name, or "" if none is like it.
func closest(name string, candidates []string) string {
	best, least := "", max(1, len(name)/4)+1
	for _, candidate := range candidates {
		d := editDistance(name, candidate)
		if d < least || d == least && candidate < best {
			best, least = candidate, d
		}
	}
	return best
}

// maxSuggestBytes bounds the names that are compared: the work is the product of
// two lengths.
const maxSuggestBytes = 64

// editDistance returns how many bytes to insert, delete, replace or swap with
// their neighbour make b of a.
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
