package convert

// gojq's syntax tree has no places. jqWords finds where a program uses each
// function, variable and format, so that a mistake can be shown: the nth use in
// the text is the nth in the tree. It is only ever used for that; a wrong place
// does no other harm.

// jqKeywords are words that are no names of functions. reduce and foreach are not
// among them: they are refused, so where they stand must be known.
var jqKeywords = map[string]bool{
	"def": true, "if": true, "then": true, "elif": true, "else": true, "end": true,
	"as": true, "try": true, "catch": true,
	"label": true, "break": true, "and": true, "or": true, "import": true,
	"include": true, "module": true, "null": true, "true": true, "false": true,
}

// jqLexer goes through a program's text once.
type jqLexer struct {
	code  string
	pos   int
	words map[string][]int

	open []byte // the brackets around pos; '"' is an interpolation's
	key  bool   // an object's key is wanted at pos
	def  bool   // pos is between def and the colon

	pipes []int // the pipes outside of all brackets
}

func jqWords(code string) map[string][]int {
	l := &jqLexer{code: code, words: map[string][]int{}}
	for l.pos < len(code) {
		l.token()
	}
	return l.words
}

func (l *jqLexer) token() {
	switch c := l.code[l.pos]; {
	case c == '#':
		for l.pos < len(l.code) && l.code[l.pos] != '\n' {
			l.pos++
		}
	case c == '"':
		l.pos++
		l.string()
		l.key = false
	case c == '$' || c == '@':
		l.name(l.pos + 1)
	case c == '.':
		// A field's name is no function.
		l.pos++
		for l.pos < len(l.code) && isWordByte(l.code[l.pos]) {
			l.pos++
		}
	case isSpace(c):
		l.pos++
	case isWordByte(c):
		l.name(l.pos)
	default:
		l.pos++
		l.punctuation(c)
	}
}

func isWordByte(c byte) bool {
	return c == '_' || isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// name reads the word whose letters start at start; a "$" or "@" may be before.
func (l *jqLexer) name(start int) {
	begin := l.pos
	for l.pos = start; l.pos < len(l.code) && isWordByte(l.code[l.pos]); l.pos++ {
	}
	word := l.code[begin:l.pos]
	plain := start == begin
	switch {
	case plain && isDigit(word[0]), plain && l.key:
	case plain && word == "def":
		l.def = true
	case l.def || jqKeywords[word]:
	default:
		l.words[word] = append(l.words[word], begin)
	}
	l.key = false
}

func (l *jqLexer) punctuation(c byte) {
	switch c {
	case '(', '[', '{':
		l.open = append(l.open, c)
	case ')', ']', '}':
		l.close()
	case '|':
		// It is not |=.
		if len(l.open) == 0 && (l.pos == len(l.code) || l.code[l.pos] != '=') {
			l.pipes = append(l.pipes, l.pos-1)
		}
	case ':':
		if len(l.open) == 0 || l.open[len(l.open)-1] != '(' {
			l.def = false
		}
	}
	l.key = c == '{' || c == ',' && len(l.open) > 0 && l.open[len(l.open)-1] == '{'
}

func (l *jqLexer) close() {
	if len(l.open) == 0 {
		return
	}
	last := l.open[len(l.open)-1]
	l.open = l.open[:len(l.open)-1]
	if last == '"' {
		l.string() // an interpolation ends; its string goes on
	}
}

// string goes to the end of the string that pos is in, or into an interpolation.
func (l *jqLexer) string() {
	for l.pos < len(l.code) {
		c := l.code[l.pos]
		l.pos++
		switch {
		case c == '"':
			return
		case c == '\\' && l.pos < len(l.code) && l.code[l.pos] == '(':
			l.pos++
			l.open = append(l.open, '"')
			return
		case c == '\\':
			l.pos++
		}
	}
}
