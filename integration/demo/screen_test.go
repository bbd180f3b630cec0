package main

import (
	"strings"
	"testing"
)

func newTestScreen(t testing.TB, w *strings.Builder) *screen {
	return newScreen(w, func(err error) { t.Error(err) })
}

func TestScreen_Terminal(t *testing.T) {
	var out strings.Builder
	s := newTestScreen(t, &out)
	s.terminal, s.color = true, true
	s.step("first")
	s.doing("waiting")
	s.progress(0, 8, "done")
	s.progress(0, 8, "done") // nothing new
	s.progress(8, 8, "done")
	s.keep()
	s.ok("two\nlines")
	want := "\n" + bold + "1. first" + plain + "\n" +
		"   " + dim + "..  waiting" + plain +
		clearLine + "   [........................] 0 of 8 done" +
		clearLine + "   [########################] 8 of 8 done\n" +
		"   " + green + "ok" + plain + "  two\n       lines\n"
	if got := out.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Who reads lines gets few of them.
func TestScreen_Plain(t *testing.T) {
	var out strings.Builder
	s := newTestScreen(t, &out)
	s.doing("waiting")
	s.step("first")
	for done := range 1001 {
		s.progress(done, 1000, "done")
	}
	s.keep()
	s.command("ls", "a\n\nb\n")
	want := `
1. first
   [........................] 0 of 1,000 done
   [######..................] 250 of 1,000 done
   [############............] 500 of 1,000 done
   [##################......] 750 of 1,000 done
   [########################] 1,000 of 1,000 done
   $ ls
   a

   b
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
