package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	green = "\x1b[32m"
	plain = "\x1b[0m"

	clearLine = "\r\x1b[K"
	barWidth  = 24

	// plainInterval is how often a progress that does not move is told to a
	// reader who sees lines only.
	plainInterval = 5 * time.Second
)

// screen is where the demo is watched.
type screen struct {
	w        io.Writer
	terminal bool // lines can be redrawn
	color    bool
	failed   func(error) // told that nobody reads any more

	steps   int
	passing string // the line that the cursor is on, to be replaced

	lastQuarter int // of the last progress line of a plain reader
	lastPlain   time.Time
}

// newScreen makes a screen. What a write fails with goes to failed.
func newScreen(w io.Writer, failed func(error)) *screen {
	s := &screen{w: w, failed: failed, terminal: isTerminal(w)}
	s.color = s.terminal && os.Getenv("NO_COLOR") == ""
	return s
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// title tells what will be seen.
func (s *screen) title(format string, args ...any) {
	s.write(s.in(bold, fmt.Sprintf(format, args...)) + "\n")
}

// step begins a numbered step.
func (s *screen) step(format string, args ...any) {
	s.steps++
	s.lastQuarter, s.lastPlain = -1, time.Time{}
	title := fmt.Sprintf("%d. %s", s.steps, fmt.Sprintf(format, args...))
	s.write("\n" + s.in(bold, title) + "\n")
}

// say tells what happens and why it matters.
func (s *screen) say(format string, args ...any) {
	s.write(indent(fmt.Sprintf(format, args...), "   "))
}

// ok tells what has been done.
func (s *screen) ok(format string, args ...any) {
	text := indent(fmt.Sprintf(format, args...), "       ")
	s.write("   " + s.in(green, "ok") + "  " + strings.TrimLeft(text, " "))
}

// command shows a command and what it printed.
func (s *screen) command(line, output string) {
	s.write(indent(s.in(dim, "$ "+line), "   "))
	if output != "" {
		s.write(indent(output, "   "))
	}
}

// doing tells what is being waited for, until the next line replaces it.
func (s *screen) doing(format string, args ...any) {
	if s.terminal {
		s.pass("   " + s.in(dim, "..  "+fmt.Sprintf(format, args...)))
	}
}

// progress tells how far something is. A terminal sees one line that changes,
// other readers a line for each quarter and now and then.
func (s *screen) progress(done, total int, note string) {
	filled := barWidth * done / total
	line := fmt.Sprintf("   [%s%s] %s of %s %s", strings.Repeat("#", filled),
		strings.Repeat(".", barWidth-filled), grouped(done), grouped(total), note)
	if s.terminal {
		s.pass(line)
		return
	}
	quarter := 4 * done / total
	if quarter != s.lastQuarter || time.Since(s.lastPlain) > plainInterval {
		s.lastQuarter, s.lastPlain = quarter, time.Now()
		s.write(line + "\n")
	}
}

// keep leaves the line that would have been replaced.
func (s *screen) keep() {
	if s.passing != "" {
		s.passing = ""
		s.write("\n")
	}
}

// pass writes a line that the next one replaces.
func (s *screen) pass(line string) {
	if line != s.passing {
		s.write(line)
		s.passing = line
	}
}

func (s *screen) write(text string) {
	if s.passing != "" {
		text = clearLine + text
		s.passing = ""
	}
	if _, err := io.WriteString(s.w, text); err != nil {
		s.failed(fmt.Errorf("tell what happens: %w", err))
	}
}

func (s *screen) in(style, text string) string {
	if !s.color {
		return text
	}
	return style + text + plain
}

// indent writes each line of a text behind a margin, and ends the last one.
func indent(text, margin string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		if line != "\n" {
			b.WriteString(margin)
		}
		b.WriteString(line)
	}
	return b.String() + "\n"
}
