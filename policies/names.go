package policies

import "strings"

// maxName is the longest name of a Kubernetes group or resource, in bytes (RFC
// 1123 subdomain).
const maxName = 253

const nameBytes = "abcdefghijklmnopqrstuvwxyz0123456789-"

// isName reports whether s could be part of an API's path: lower-case letters,
// digits, dashes, and the bytes of more.
func isName(s, more string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for i := range len(s) {
		if strings.IndexByte(nameBytes, s[i]) < 0 && strings.IndexByte(more, s[i]) < 0 {
			return false
		}
	}
	return s[0] != '-' && s[len(s)-1] != '-'
}

// checkGroup says what is wrong with an API group, "" when nothing. The core
// group is empty.
func checkGroup(s string) (problem string) {
	if s == "" || isName(s, ".") {
		return ""
	}
	if strings.Contains(s, "/") {
		return "a group holds no version: write the part before the slash"
	}
	return `a group is lower-case letters, digits, "-" and ".", such as "policy" or "networking.k8s.io"`
}

// checkVersion says what is wrong with an API version, "" when nothing.
func checkVersion(s string) (problem string) {
	if isName(s, "") {
		return ""
	}
	if strings.Contains(s, "/") {
		return "a version holds no group: write the part after the slash"
	}
	return `a version is lower-case letters, digits and "-", such as "v1beta1"`
}

// checkResource says what is wrong with a resource, "" when nothing.
func checkResource(s string) (problem string) {
	if isName(s, ".") {
		return ""
	}
	if strings.Contains(s, "/") {
		return "subresources are not named: they follow their resource"
	}
	return `a resource is the lower-case plural of a path, such as "poddisruptionbudgets", not a kind`
}

// checkKind says what is wrong with a kind, "" when nothing. An empty one is none.
func checkKind(s string) (problem string) {
	lower := strings.ToLower(s)
	if s == "" || isName(lower, "") && (lower[0] < '0' || lower[0] > '9') {
		return ""
	}
	return `a kind is letters and digits, such as "PodDisruptionBudget"`
}
