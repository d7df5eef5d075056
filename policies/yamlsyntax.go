package policies

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// yamlLine matches the line number in an error of the YAML library.
var yamlLine = regexp.MustCompile(`^line (\d+): `)

// syntaxError notes an error of the YAML library. Its errors have a line, which is
// often that where the broken part begins, and no column; so we look for what is
// wrong from there on.
func (f *yamlFile) syntaxError(err error) {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
	}
	m := syntaxMistake{line: min(max(line, 1), len(f.lines)), msg: msg, col: -1}
	for _, known := range syntaxMistakes {
		if strings.HasPrefix(msg, known.theirs) {
			m.line = min(m.line+known.behind, len(f.lines))
			known.explain(f.lines, &m)
			break
		}
	}
	if m.col < 0 {
		m.col = indentOf(f.lines[m.line-1])
	}
	f.failAt(source.Pos{File: f.name, Line: m.line, Col: m.col + 1}, "not YAML: %s", m.msg)
}

// syntaxMistake is a mistake while it is looked for: its line, counted from 1, the
// offset in it, or -1 while none is known, and what is said about it.
type syntaxMistake struct {
	line, col int
	msg       string
}

// syntaxMistakes are the messages of the YAML library that do not say what to do, or
// not where. Those of its parser, other than those of its scanner, count lines from
// 0: they are one behind.
var syntaxMistakes = []struct {
	theirs  string
	behind  int
	explain func(lines []string, m *syntaxMistake)
}{
	{"did not find expected ',' or '}'", 1, unclosed("{", `the "{" is not closed, or a "," is missing behind a value in it`)},
	{"did not find expected ',' or ']'", 1, unclosed("[", `the "[" is not closed, or a "," is missing behind an item in it`)},
	{"did not find expected '-' indicator", 1, misindented("the list that begins here goes on with something that is no item: check the indentation")},
	{"did not find expected key", 1, misindented("the map that begins here goes on with something that is no key: check the indentation, and what stands behind quotes and brackets")},
	{"did not find expected node content", 1, keep},
	{"did not find expected <document start>", 1, keep},
	{"found undefined tag handle", 1, keep},
	{"found incompatible YAML document", 1, keep},
	{"found unexpected end of stream", 0, unclosedQuote},
	{"found unknown escape character", 0, unknownEscape},
	{"found character that cannot start any token", 0, badStart},
	{"mapping values are not allowed in this context", 0, secondColon},
	{"could not find expected ':'", 0, say("the line is no key with a colon, and not part of what stands above it: check its indentation")},
	{"did not find expected comment or line break", 0, blockHeader},
	{"found a tab character", 0, tabIndent},
	{"unknown anchor ", 0, unknownAnchor},
}

func keep([]string, *syntaxMistake) {}

func say(msg string) func([]string, *syntaxMistake) {
	return func(_ []string, m *syntaxMistake) { m.msg = msg }
}

// unclosed finds the bracket that is not closed: the last one on the line that has no
// counterpart there, or else the first.
func unclosed(bracket, msg string) func([]string, *syntaxMistake) {
	closing := map[string]string{"{": "}", "[": "]"}[bracket]
	return func(lines []string, m *syntaxMistake) {
		m.msg = msg
		line := lines[m.line-1]
		m.col = strings.Index(line, bracket)
		for i, open := len(line)-1, 0; i >= 0; i-- {
			switch line[i : i+1] {
			case closing:
				open++
			case bracket:
				if open--; open < 0 {
					m.col = i
					return
				}
			}
		}
	}
}

// misindented finds the first line, from that where a list or map begins, that is
// indented less than it and otherwise than all around it. Where there is none, msg
// is said at the beginning.
func misindented(msg string) func([]string, *syntaxMistake) {
	return func(lines []string, m *syntaxMistake) {
		m.msg = msg
		stray := func(line int) {
			m.line, m.col = line, indentOf(lines[line-1])
			m.msg = fmt.Sprintf("the line is indented by %d, which nothing above it is that it could belong to", m.col)
		}
		above := m.line - 2
		for above > 0 && isBlankYAML(lines[above]) {
			above--
		}
		if above >= 0 {
			around, within := indentsAround(lines, above)
			if indent := indentOf(lines[m.line-1]); indent < within && !around[indent] {
				stray(m.line)
				return
			}
		}
		around, within := indentsAround(lines, m.line-1)
		for i, line := range lines[m.line:] {
			if isBlankYAML(line) {
				continue
			}
			indent := indentOf(line)
			if indent >= within {
				continue
			}
			if !around[indent] {
				stray(m.line + 1 + i)
			}
			return
		}
	}
}

// indentsAround returns how far the content of lines[at] is indented, behind its
// dashes, and the indentations of all that it is in.
func indentsAround(lines []string, at int) (around map[int]bool, within int) {
	around = map[int]bool{0: true}
	within = -1
	least := 0
	for i := at; i >= 0; i-- {
		line := lines[i]
		if isBlankYAML(line) || within >= 0 && indentOf(line) >= least {
			continue
		}
		content := indentOf(line)
		for strings.HasPrefix(line[content:], "- ") {
			around[content] = true
			content += 2 + indentOf(line[content+2:])
		}
		if within < 0 {
			within = content
		} else {
			around[content] = true
		}
		least = indentOf(line)
	}
	return around, within
}

// isBlankYAML reports whether line has nothing, or nothing but a comment.
func isBlankYAML(line string) bool {
	return isBlank(line) || strings.HasPrefix(strings.TrimLeft(line, " \t"), "#")
}

// indentOf returns how many bytes of white space line begins with.
func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// openQuote matches a quote at the beginning of a value, an item or a key.
var openQuote = regexp.MustCompile(`(?:^|[\s\[{,])["']`)

func unclosedQuote(lines []string, m *syntaxMistake) {
	m.msg = "the quote is not closed"
	if all := openQuote.FindAllStringIndex(lines[m.line-1], -1); all != nil {
		m.col = all[len(all)-1][1] - 1
	}
}

// badEscape matches a backslash and what YAML has no escape for.
var badEscape = regexp.MustCompile(`^\\[^0abt\tnvfre "'/\\N_LPxuU]`)

// unknownEscape finds the escape, from the line on where its text begins.
func unknownEscape(lines []string, m *syntaxMistake) {
	for i, line := range lines[m.line-1:] {
		for at := 0; at < len(line); at++ {
			if line[at] != '\\' {
				continue
			}
			if bad := badEscape.FindString(line[at:]); bad != "" {
				m.line, m.col = m.line+i, at
				m.msg = bad + ` is no escape: in double quotes a backslash is written \\, in single quotes and behind "|" it stands for itself`
				return
			}
			at++
		}
	}
}

const noTabs = "a tab cannot indent: use spaces"

// tabIndent finds the first line, from that on where what it breaks begins, that a tab
// indents.
func tabIndent(lines []string, m *syntaxMistake) {
	for i, line := range lines[m.line-1:] {
		if at := strings.IndexByte(line[:indentOf(line)], '\t'); at >= 0 && !isBlank(line) {
			m.line, m.col, m.msg = m.line+i, at, noTabs
			return
		}
	}
}

// badStart explains characters that no plain text begins with.
func badStart(lines []string, m *syntaxMistake) {
	line := lines[m.line-1]
	if i := strings.IndexByte(line[:indentOf(line)], '\t'); i >= 0 {
		m.col, m.msg = i, noTabs
		return
	}
	if at := reservedStart.FindStringSubmatchIndex(line); at != nil {
		m.col = at[2]
		m.msg = fmt.Sprintf("a text that begins with %s stands in quotes", source.Quote(line[at[2]:at[3]]))
	}
}

// reservedStart matches a value, or an item, that begins with a character that YAML
// keeps for itself.
var reservedStart = regexp.MustCompile("(?:^|: +|- +|[\\[{,] *)([@`%])")

// secondColon finds the colon that makes a text without quotes another key.
func secondColon(lines []string, m *syntaxMistake) {
	line := lines[m.line-1]
	first := strings.Index(line, ": ")
	second := -1
	if first >= 0 {
		second = strings.Index(line[first+1:], ": ")
	}
	if second < 0 {
		m.msg = "a key cannot stand here: what stands above it has a value, or is indented otherwise"
		return
	}
	m.col = first + 1 + second
	m.msg = `": " in a text without quotes: put the text in quotes, or on lines of its own behind "|"`
}

func blockHeader(lines []string, m *syntaxMistake) {
	m.msg = `a text in lines begins in the line below its "|" or ">"`
	if at := blockIndicator.FindStringIndex(lines[m.line-1]); at != nil {
		m.col = at[1] - 1
	}
}

// blockIndicator matches what begins a text in lines.
var blockIndicator = regexp.MustCompile(`(?:: +|- +)[|>]`)

// unknownAnchor finds the alias, for which the library tells no line at all.
func unknownAnchor(lines []string, m *syntaxMistake) {
	_, name, _ := strings.Cut(m.msg, "'")
	name, _, _ = strings.Cut(name, "'")
	alias := regexp.MustCompile(`(?:^|[\s\[{,])(\*` + regexp.QuoteMeta(name) + `)(?:$|[\s\]},])`)
	for i, line := range lines {
		if at := alias.FindStringSubmatchIndex(line); at != nil {
			m.line, m.col = i+1, at[2]
			m.msg = fmt.Sprintf("no &%s stands above the alias *%[1]s", name)
			return
		}
	}
}
