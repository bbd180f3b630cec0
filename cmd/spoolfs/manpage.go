package main

import (
	"fmt"
	"strings"
)

// manPage is a manual page being written, in the Markdown of md2man.
type manPage struct{ strings.Builder }

func newManPage(name, section, help string) *manPage {
	p := &manPage{}
	fmt.Fprintf(p, "%s %s \"\" \"spoolfs\" \"spoolfs manual\"\n===\n", strings.ToUpper(name), section)
	p.head("NAME")
	p.text(escaped(name + " - " + strings.TrimSuffix(help, ".")))
	return p
}

func (p *manPage) head(title string)      { fmt.Fprintf(p, "\n# %s\n", title) }
func (p *manPage) text(text string)       { fmt.Fprintf(p, "\n%s\n", text) }
func (p *manPage) item(head, text string) { fmt.Fprintf(p, "\n%s\n: %s\n", head, text) }

// detail writes a text for people, in which lines with four spaces are examples.
func (p *manPage) detail(text string) {
	p.WriteByte('\n')
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if !strings.HasPrefix(line, "    ") {
			line = escaped(line)
		}
		p.WriteString(line + "\n")
	}
}

func (p *manPage) exitStatus() {
	p.head("EXIT STATUS")
	p.text("0, or one of sysexits.h: 64 wrong arguments, 65 wrong data, 69 no spool or no answer, 70 a fault of the program, 73 cannot mount or create, " +
		"74 input or output, 75 try again, 77 not allowed, 78 wrong configuration.")
}

// escaped is text in which Markdown sees nothing.
func escaped(text string) string {
	return markdownEscaper.Replace(text)
}

var markdownEscaper = func() *strings.Replacer {
	var pairs []string
	for _, c := range "\\`*_{}[]<>#+" {
		pairs = append(pairs, string(c), "\\"+string(c))
	}
	return strings.NewReplacer(pairs...)
}()
