package main

import (
	"io"
	"os"
	"strings"
)

// What --color takes.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

var colorModes = []string{colorAuto, colorAlways, colorNever}

// useColor reports whether what goes to w is coloured. NO_COLOR is as of
// https://no-color.org.
func useColor(w io.Writer, mode string) bool {
	if mode != colorAuto {
		return mode == colorAlways
	}
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// The colours, as terminals take them.
const (
	colorRed   = "\x1b[31m"
	colorGreen = "\x1b[32m"
	colorCyan  = "\x1b[36m"
	colorBold  = "\x1b[1m"
	colorOff   = "\x1b[0m"
)

// colorDiff colours the lines of a unified diff.
func colorDiff(diff string) string {
	var b strings.Builder
	for line := range strings.Lines(diff) {
		color := ""
		switch {
		case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
			color = colorBold
		case strings.HasPrefix(line, "@@ "):
			color = colorCyan
		case strings.HasPrefix(line, "+"):
			color = colorGreen
		case strings.HasPrefix(line, "-"):
			color = colorRed
		}
		text, newline := strings.CutSuffix(line, "\n")
		if color != "" {
			text = color + text + colorOff
		}
		b.WriteString(text)
		if newline {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
