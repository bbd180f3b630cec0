package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/sys/unix"
)

// progress shows how far something has come: a bar with rate and time left on a
// terminal, and a line now and then elsewhere.
type progress struct {
	out   io.Writer
	what  string
	total uint64
	began time.Time
	told  time.Time
	bar   *progressbar.ProgressBar // nil if it is no terminal
}

// tellEvery is how often a line is written where there is no terminal.
const tellEvery = 10 * time.Second

func newProgress(out io.Writer, what string, total uint64) *progress {
	p := &progress{out: out, what: what, total: total, began: time.Now(), told: time.Now()}
	if isTerminal(out) {
		p.bar = progressbar.NewOptions64(max(int64(total), 1),
			progressbar.OptionSetWriter(out), progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("msg"),
			progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionFullWidth(),
		)
	}
	return p
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// left says how many are still to be done, and in what state things are.
func (p *progress) left(n uint64, state string) {
	done := p.total - min(n, p.total)
	if p.bar != nil {
		p.bar.Describe(fmt.Sprintf("%s (%s)", p.what, state))
		_ = p.bar.Set64(int64(done)) // a terminal that is gone ends nothing
		return
	}
	if time.Since(p.told) >= tellEvery {
		p.told = time.Now()
		fmt.Fprintln(p.out, p.line(done, state))
	}
}

// line is the state for people: "draining: 500 of 1000 (50%), 100 msg/s, 5s left".
func (p *progress) line(done uint64, state string) string {
	elapsed := time.Since(p.began).Seconds()
	rate := float64(done) / max(elapsed, 0.001)
	text := fmt.Sprintf("%s: %d of %d (%d%%), %s, %.0f msg/s", p.what, done, p.total, 100*done/max(p.total, 1), state, rate)
	if rate > 0 {
		text += ", " + age(float64(p.total-done)/rate) + " left"
	}
	return text
}

// end ends the line of the bar.
func (p *progress) end(left uint64) {
	if p.bar == nil {
		return
	}
	_ = p.bar.Set64(int64(p.total - min(left, p.total)))
	fmt.Fprintln(p.out)
}
