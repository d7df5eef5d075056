// Package doctable reads the tables of a Markdown page, so that tests run the examples
// that stand in the documentation. It knows no more of Markdown than tables, headings
// and fenced blocks.
package doctable

import (
	"fmt"
	"os"
	"strings"
)

// Page is a Markdown page.
type Page struct {
	name  string
	lines []string
}

// Row is one row of a table. What is in it stands without the backticks around it.
type Row struct {
	Line  int // where it stands, from 1
	Cells []string
}

// Read reads the page in the file name.
func Read(name string) (*Page, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &Page{name, strings.Split(string(data), "\n")}, nil
}

// Tables returns the rows of all tables under headings of any level that begin with
// prefix, whose columns are called like columns.
func (p *Page) Tables(prefix string, columns ...string) ([]Row, error) {
	var rows []Row
	under, inTable := false, false
	for i, line := range p.lines {
		switch {
		case strings.HasPrefix(line, "#"):
			under, inTable = strings.HasPrefix(strings.TrimLeft(line, "# "), prefix), false
		case !under || !strings.HasPrefix(line, "|"):
			inTable = false
		case !inTable:
			inTable = strings.Join(cells(line), "|") == strings.Join(columns, "|")
		case strings.HasPrefix(line, "|---"):
		default:
			row := Row{i + 1, cells(line)}
			if len(row.Cells) != len(columns) {
				return nil, fmt.Errorf("%s:%d: the row has %d cells, and the table %d columns: write | in a cell as \\|", p.name, row.Line, len(row.Cells), len(columns))
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s: no table with the columns %v under a heading %q", p.name, columns, prefix)
	}
	return rows, nil
}

// Block returns the text of the first fenced block of a language under a heading that
// begins with prefix.
func (p *Page) Block(prefix, language string) (string, error) {
	under := false
	for i, line := range p.lines {
		if strings.HasPrefix(line, "#") {
			under = strings.HasPrefix(strings.TrimLeft(line, "# "), prefix)
		}
		if !under || line != "```"+language {
			continue
		}
		for j, end := range p.lines[i+1:] {
			if end == "```" {
				return strings.Join(p.lines[i+1:i+1+j], "\n") + "\n", nil
			}
		}
	}
	return "", fmt.Errorf("%s: no block of %s under a heading %q", p.name, language, prefix)
}

// cells takes a line of a table apart.
func cells(line string) []string {
	const bar = "\x00"
	line = strings.ReplaceAll(line, `\|`, bar)
	parts := strings.Split(strings.Trim(line, "|"), "|")
	for i, part := range parts {
		part = strings.ReplaceAll(strings.TrimSpace(part), bar, "|")
		if code, ok := strings.CutPrefix(part, "`"); ok && strings.Count(part, "`") == 2 && strings.HasSuffix(code, "`") {
			part = strings.TrimSuffix(code, "`")
		}
		parts[i] = part
	}
	return parts
}
