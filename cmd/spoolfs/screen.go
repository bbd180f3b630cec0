package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// style is how a piece of text looks.
type style string

// The styles, by their SGR parameters.
const (
	inkPlain  style = ""
	inkBold   style = "1"
	inkDim    style = "2"
	inkRed    style = "31"
	inkGreen  style = "32"
	inkYellow style = "33"
	inkCyan   style = "36"
	inkAlarm  style = "1;37;41"
	inkNotice style = "1;30;43"
	inkGood   style = "1;30;42"
)

// span is text of one style, and textLine a line of the screen.
type span struct {
	text  string
	style style
}

type textLine []span

func (l textLine) width() (n int) {
	for _, s := range l {
		n += utf8.RuneCountInString(s.text)
	}
	return n
}

// padded fills the line up to a column.
func (l textLine) padded(column int) textLine {
	if missing := column - l.width(); missing > 0 {
		l = append(l, span{strings.Repeat(" ", missing), inkPlain})
	}
	return l
}

// look says what a screen can show.
type look struct {
	width, height int
	color         bool
	unicode       bool
}

// render cuts lines to the screen, and returns them with escape codes if there is
// colour.
func (k look) render(lines []textLine) []string {
	var all []string
	for _, l := range lines[:min(len(lines), k.height)] {
		all = append(all, k.renderLine(l))
	}
	return all
}

func (k look) renderLine(l textLine) string {
	var b strings.Builder
	left := k.width
	for _, s := range l {
		text := []rune(strings.Map(printable, s.text))
		text = text[:min(len(text), left)]
		left -= len(text)
		if k.color && s.style != inkPlain && len(text) > 0 {
			b.WriteString("\x1b[" + string(s.style) + "m" + string(text) + "\x1b[0m")
		} else {
			b.WriteString(string(text))
		}
	}
	if k.color {
		return b.String()
	}
	return strings.TrimRight(b.String(), " ")
}

// printable keeps what could do something to the terminal out of it.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return '?'
}

// sparkline draws a series in as many characters, from 0 to the highest value.
func (k look) sparkline(series []float64) string {
	steps := []rune(" .:-=+*#")
	if k.unicode {
		steps = []rune("▁▂▃▄▅▆▇█")
	}
	high := 0.0
	for _, v := range series {
		high = max(high, v)
	}
	var b strings.Builder
	for _, v := range series {
		switch {
		case v < 0:
			b.WriteByte(' ')
		case v == 0:
			b.WriteRune(steps[0])
		default: // what is there is seen, however little
			b.WriteRune(steps[1+int(v/high*float64(len(steps)-2)+0.5)])
		}
	}
	return b.String()
}

// bar draws how full something is.
func (k look) bar(part float64, width int) string {
	full, empty := "#", "."
	if k.unicode {
		full, empty = "█", "░"
	}
	n := int(min(max(part, 0), 1)*float64(width) + 0.5)
	return strings.Repeat(full, n) + strings.Repeat(empty, width-n)
}

// wrap breaks text into lines of at most so many characters, at spaces.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
