package main

import (
	"fmt"
	"io"
	"strings"
)

// markdown prints a table and the diffs below it, as a comment on a pull request.
func (p *printer) markdown(reports []report) error {
	fmt.Fprint(p.out, "| manifest | result |\n|---|---|\n")
	for _, r := range reports {
		lines := append([]string{r.Verdict()}, resultNotes(r)...)
		if r.Err != nil {
			lines = append(lines, r.Err.Error())
		}
		fmt.Fprintf(p.out, "| %s | %s |\n", cell(r.name), cell(strings.Join(lines, "\n")))
	}
	for _, r := range reports {
		text, err := diffs(r)
		if err != nil {
			return err
		}
		var more strings.Builder
		if p.trace {
			printTrace(&more, r.Changes)
		}
		if p.explain {
			printExplained(&more, r.Explained)
		}
		if text == "" && more.Len() == 0 {
			continue
		}
		fmt.Fprintf(p.out, "\n<details><summary>%s</summary>\n", htmlEscaper.Replace(r.name))
		fenced(p.out, "diff", text)
		fenced(p.out, "text", more.String())
		fmt.Fprint(p.out, "\n</details>\n")
	}
	return nil
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// cell is text in a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", "<br>", "\r", "").Replace(htmlEscaper.Replace(text))
}

// fenced prints text as a block of code, with a fence that is not in it.
func fenced(w io.Writer, language, text string) {
	if text == "" {
		return
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	fmt.Fprintf(w, "\n%s%s\n%s\n%s\n", fence, language, strings.TrimSuffix(text, "\n"), fence)
}
