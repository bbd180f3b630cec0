package main

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"
)

// terminal is a screen that is drawn anew, and keys that come at once. It uses
// the alternate screen, so that what was there is there again afterwards.
type terminal struct {
	in, out *os.File
	saved   *unix.Termios
	keys    chan byte
	signals chan os.Signal // SIGWINCH, SIGTSTP and SIGCONT
}

// openTerminal returns nil if out is no terminal that can do this.
func openTerminal(in *os.File, out io.Writer) *terminal {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return nil
	}
	if _, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS); err != nil {
		return nil
	}
	t := &terminal{in: in, out: file, keys: make(chan byte), signals: make(chan os.Signal, 8)}
	signal.Notify(t.signals, unix.SIGWINCH, unix.SIGTSTP)
	go t.readKeys()
	t.enter()
	return t
}

// enter takes the screen. Keys come without a return, and are not shown; Ctrl-C
// and Ctrl-Z stay signals.
func (t *terminal) enter() {
	if now, err := unix.IoctlGetTermios(int(t.in.Fd()), unix.TCGETS); err == nil {
		saved := *now
		t.saved = &saved
		now.Lflag &^= unix.ICANON | unix.ECHO
		now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
		_ = unix.IoctlSetTermios(int(t.in.Fd()), unix.TCSETSF, now) // a screen without keys is one, too
	}
	_, _ = io.WriteString(t.out, "\x1b[?1049h\x1b[?25l\x1b[2J")
}

// leave gives the screen back.
func (t *terminal) leave() {
	_, _ = io.WriteString(t.out, "\x1b[?25h\x1b[?1049l")
	if t.saved != nil {
		_ = unix.IoctlSetTermios(int(t.in.Fd()), unix.TCSETSF, t.saved)
	}
}

// close gives the screen back for good.
func (t *terminal) close() {
	signal.Stop(t.signals)
	t.leave()
}

// readKeys ends with the process: a read of a terminal cannot be given up.
func (t *terminal) readKeys() {
	var b [1]byte
	for {
		if n, err := t.in.Read(b[:]); err != nil || n == 0 {
			return
		}
		t.keys <- b[0]
	}
}

// suspend is Ctrl-Z: the shell gets its screen, and we take it again when we go
// on.
func (t *terminal) suspend() {
	t.leave()
	_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	t.enter()
}

// look is what the terminal can show now.
func (t *terminal) look() look {
	k := look{width: 80, height: 24, color: os.Getenv("NO_COLOR") == "", unicode: speaksUnicode()}
	if size, err := unix.IoctlGetWinsize(int(t.out.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 && size.Row > 0 {
		k.width, k.height = int(size.Col), int(size.Row)
	}
	return k
}

// speaksUnicode reports whether the locale is one of UTF-8.
func speaksUnicode() bool {
	locale := strings.ToLower(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
}

// draw paints lines over those that are there, in one write and without clearing
// the screen first, so that nothing flickers.
func (t *terminal) draw(lines []string) error {
	var b bytes.Buffer
	b.WriteString("\x1b[H")
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	_, err := t.out.Write(b.Bytes())
	return err
}
