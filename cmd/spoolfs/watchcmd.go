package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// watcher is "spoolfs status --watch".
type watcher struct {
	env      *environment
	client   *client
	interval time.Duration
	json     bool
	term     *terminal // nil if there is none
	history  history
	printed  int
}

func (c *statusCommand) watch(env *environment, cl *client) error {
	w := &watcher{env: env, client: cl, interval: c.Interval, json: c.JSON}
	if !c.JSON {
		w.term = openTerminal(os.Stdin, env.stdout)
	}
	if w.term != nil {
		defer w.term.close()
	}
	return w.run()
}

// run asks and shows until a signal or a key ends it. While the daemon does not
// answer the screen stays alive, and says so.
func (w *watcher) run() error {
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	ctx, cancel := context.WithCancel(w.env.ctx)
	w.client.ctx = ctx
	samples, ask := make(chan sample), make(chan struct{}, 1)
	var asking sync.WaitGroup
	asking.Go(func() { w.askAlways(ask, samples) })
	defer func() {
		cancel()
		close(ask)
		asking.Wait()
	}()
	ask <- struct{}{}
	var keys chan byte
	var signals chan os.Signal
	if w.term != nil {
		keys, signals = w.term.keys, w.term.signals
	}
	for {
		if err := w.draw(); err != nil {
			return withCode(exitIO, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case s := <-samples:
			w.history = w.history.with(s)
			if err := w.print(s); err != nil {
				return withCode(exitIO, err)
			}
		case <-ticker.C:
			select {
			case ask <- struct{}{}:
			default: // the last question has no answer yet
			}
		case key := <-keys:
			if key == 'q' || key == 'Q' {
				return nil
			}
		case s := <-signals:
			if s == unix.SIGTSTP {
				w.term.suspend()
			}
		}
	}
}

// askAlways answers each wish with a sample.
func (w *watcher) askAlways(ask <-chan struct{}, samples chan<- sample) {
	for range ask {
		s, err := w.client.status()
		one := sample{at: time.Now(), status: &s}
		if err != nil {
			one.status, one.err = nil, err.Error()
		}
		select {
		case samples <- one:
		case <-w.client.ctx.Done():
			return
		}
	}
}

func (w *watcher) draw() error {
	if w.term == nil {
		return nil
	}
	screen := &watchScreen{look: w.term.look(), mountpoint: w.client.mount.Mountpoint, history: w.history, now: time.Now()}
	return w.term.draw(screen.draw())
}

// watchHeader and the lines below it are what is printed without a terminal.
const watchHeader = "TIME      LEVEL     BROKER          WAITING      IN/S     OUT/S  OLDEST    DEAD  PROBLEM"

// print prints a sample where there is no terminal.
func (w *watcher) print(s sample) (err error) {
	switch {
	case w.term != nil:
		return nil
	case w.json:
		return json.NewEncoder(w.env.stdout).Encode(watchedJSON(s))
	}
	if w.printed%20 == 0 {
		_, err = fmt.Fprintln(w.env.stdout, watchHeader)
	}
	w.printed++
	if err == nil {
		_, err = fmt.Fprintln(w.env.stdout, w.history.line(s))
	}
	return err
}

// watchedJSON is the status, or an object with an error and a time.
func watchedJSON(s sample) any {
	if s.status != nil {
		return s.status
	}
	return struct {
		Error string    `json:"error"`
		Time  time.Time `json:"time"`
	}{s.err, s.at}
}

// line is a sample as a line of columns.
func (h history) line(s sample) string {
	clock := s.at.Format("15:04:05")
	if s.status == nil {
		return fmt.Sprintf("%s  %-8s  %s", clock, "NOANSWER", s.err)
	}
	rate := func(of total) string {
		v, ok := h.rate(of, s.at.Add(-rateTime), s.at)
		if !ok {
			return "-"
		}
		return fmt.Sprintf("%.0f", v)
	}
	q, problem := s.status.Queue, "-"
	if len(s.status.Health.Problems) > 0 {
		problem = oneLine(s.status.Health.Problems[0].Text)
	}
	return fmt.Sprintf("%s  %-8s  %-10s %12d %9s %9s %7s %7d  %s", clock, s.status.Health.Level, s.status.Publisher.State,
		waiting(s.status), rate(ingested), rate(confirmed), shortAge(time.Duration(oldestSeconds(*s.status)*float64(time.Second))), q.Dead, problem)
}
