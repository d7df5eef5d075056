package policies

import (
	"path"
	"slices"
	"strings"
)

// ShippedDoc is what is written at the head of the files of one shipped policy, or of
// one document of rules.
type ShippedDoc struct {
	// Name is that of the policy, "policy-v1beta1/poddisruptionbudgets". The rules of a
	// document have names that go on after it with a slash.
	Name string

	// From and To are the two sides of the conversion, "policy/v1beta1" and "policy/v1",
	// and Resources those of From. Where nothing is converted they are empty.
	From, To  string
	Resources []string

	// Text is all of it: paragraphs with an empty line between them.
	Text string

	// Covers and Limits are its paragraphs on what is covered and what cannot be.
	// Without a limit that is known, Limits is empty.
	Covers, Limits string
}

// The first words of the paragraphs. A doc without a limit has noLimit in place of one.
const (
	coversBegins = "Covers "
	limitsBegins = "Cannot "
	noLimit      = "No limit is known."
)

// docsOf returns what is written at the heads of the files of part, in the order of
// their names.
func docsOf(part libraryPart) []ShippedDoc {
	var docs []ShippedDoc
	for _, file := range part.files {
		stem, _, _ := strings.Cut(path.Base(file.Name), ".")
		name := part.name + "/" + stem
		text := headComment(string(file.Data))
		if text == "" || !strings.Contains(text, "\n\n"+coversBegins) {
			continue // a remark on a program
		}
		doc := ShippedDoc{Name: name, Text: text, Covers: paragraph(text, coversBegins), Limits: paragraph(text, limitsBegins)}
		for _, policy := range part.policies {
			if c := policy.Convert; c != nil && doc.isOf(policy.Name) {
				doc.From, doc.To = c.From.APIVersion(), c.To.APIVersion()
				doc.Resources = append(doc.Resources, c.From.Resource)
			}
		}
		docs = append(docs, doc)
	}
	return docs
}

// isOf reports whether the doc is about the policy called name.
func (d ShippedDoc) isOf(name string) bool {
	return name == d.Name || strings.HasPrefix(name, d.Name+"/")
}

// paragraph returns the paragraph of text that begins with begin, in one line.
func paragraph(text, begin string) string {
	paragraphs := strings.Split(text, "\n\n")
	i := slices.IndexFunc(paragraphs, func(p string) bool { return strings.HasPrefix(p, begin) })
	if i < 0 {
		return ""
	}
	return strings.ReplaceAll(paragraphs[i], "\n", " ")
}

// headComment returns the comment lines that a file begins with, without their
// comment signs.
func headComment(data string) string {
	var lines []string
	for line := range strings.Lines(data) {
		line = strings.TrimRight(line, "\n")
		text, ok := strings.CutPrefix(line, "//")
		if !ok {
			text, ok = strings.CutPrefix(line, "#")
		}
		if !ok {
			break
		}
		lines = append(lines, strings.TrimPrefix(text, " "))
	}
	return strings.Join(lines, "\n")
}
