package policies

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// checkText refuses files that are no text, with the place of the first bad byte,
// and those that are empty.
func checkText(file File) *source.Error {
	if len(bytes.TrimSpace(bytes.TrimPrefix(file.Data, utf8BOM))) == 0 {
		return &source.Error{
			Pos: source.Pos{File: file.Name, Line: 1, Col: 1},
			Msg: "the file is empty: write the policy or remove the file",
		}
	}
	if bytes.HasPrefix(file.Data, []byte("\xff\xfe")) || bytes.HasPrefix(file.Data, []byte("\xfe\xff")) {
		return &source.Error{Pos: source.Pos{File: file.Name}, Msg: "the file is in UTF-16: save it in UTF-8"}
	}
	for rest := file.Data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size <= 1 || r == 0 {
			text := source.Text{Code: string(file.Data), Start: source.Pos{File: file.Name, Line: 1, Col: 1}}
			return text.Error(len(file.Data)-len(rest), "byte 0x%02x is not text: policy files are in UTF-8", rest[0])
		}
		rest = rest[size:]
	}
	return nil
}

// utf8BOM is what some editors put before UTF-8 text.
var utf8BOM = []byte("\ufeff")

// fileText returns the whole of file as an expression or program, without the
// white space at its end: something that is missing there is missing on the last
// line.
func fileText(file File) *source.Text {
	return &source.Text{
		Code:  strings.TrimRight(string(bytes.TrimPrefix(file.Data, utf8BOM)), " \t\r\n"),
		Start: source.Pos{File: file.Name, Line: 1, Col: 1},
	}
}

// showLines gives the mistakes that have a place and no line yet the line that
// stands there, so that they are shown like all others. The engine knows only
// the place of a rule or of its field, not the file around it.
func showLines(errs source.Errors, sources ...[]File) {
	if len(errs) == 0 {
		return
	}
	data := map[string][]byte{}
	for _, files := range sources {
		for _, file := range files {
			data[file.Name] = file.Data
		}
	}
	split := map[string][]string{} // lines of the files that have mistakes
	for _, e := range errs {
		if e.Line != "" || e.Pos.Line == 0 {
			continue
		}
		name := e.Pos.File
		if split[name] == nil {
			split[name] = splitLines(data[name])
		}
		if lines := split[name]; e.Pos.Line <= len(lines) && !isBlank(lines[e.Pos.Line-1]) {
			e.Line = strings.TrimRight(lines[e.Pos.Line-1], "\r")
			e.Caret = min(max(e.Pos.Col-1, 0), len(e.Line))
		}
	}
}

// Show returns copies of mistakes that were found in the policies of opts, and in those of
// files, with the lines at their places. It reads what opts names once more; a file that is
// gone by now has no line.
func Show(errs source.Errors, opts Options, files ...File) source.Errors {
	if len(errs) == 0 {
		return nil
	}
	found, _ := readAll(opts.Dirs)
	return shown(errs, append(found, files...))
}

// Show returns copies of mistakes that were found in policies of the Store, with the
// lines at their places.
func (s *Store) Show(errs source.Errors) source.Errors {
	s.mu.Lock()
	defer s.mu.Unlock()
	return shown(errs, s.files.files)
}

func shown(errs source.Errors, files []File) source.Errors {
	copies := make(source.Errors, len(errs))
	for i, e := range errs {
		copied := *e
		copies[i] = &copied
	}
	showLines(copies, files)
	return copies
}

// splitLines returns the lines of data without their newlines.
func splitLines(data []byte) []string {
	return strings.Split(string(bytes.TrimPrefix(data, utf8BOM)), "\n")
}
