package publisher

import (
	"context"
	"fmt"
	"time"
)

// watch closes a session whose oldest message has waited too long for its
// verdict, or whose broker blocks publishers for too long.
func (r *run) watch(ctx context.Context) {
	ticker := time.NewTicker(max(time.Millisecond, min(r.p.opts.ConfirmTimeout/4, time.Second)))
	defer ticker.Stop()
	w := watchdog{confirm: r.p.opts.ConfirmTimeout, blocked: r.p.opts.BlockedTimeout}
	for {
		var now time.Time
		select {
		case now = <-ticker.C:
		case <-ctx.Done():
			return
		}
		r.mu.Lock()
		oldest := r.flying.oldest(now)
		r.mu.Unlock()
		reason := r.session.Blocked()
		r.logBlock(reason, w.since, now)
		if err := w.check(now, oldest, reason); err != nil {
			r.giveUp(err)
			r.giveUp(r.session.Close())
			return
		}
	}
}

// logBlock logs the beginning and the end of a block; since is its beginning as
// far as it is known.
func (r *run) logBlock(reason string, since, now time.Time) {
	log, route := r.p.opts.Logger, r.p.opts.Route.Name()
	switch {
	case reason != "" && since.IsZero():
		log.Warn("the broker blocks publishers", "route", route, "reason", capped(reason), "advice", AlarmedBroker.Advice())
	case reason == "" && !since.IsZero():
		log.Info("the broker takes messages again", "route", route, "after", now.Sub(since).Round(time.Second))
	}
}

// watchdog knows how long a session has been silent.
type watchdog struct {
	confirm, blocked time.Duration // limits

	since time.Time // of the block; zero when there is none
	clear time.Time // end of the last block
}

// check returns why the session is to be replaced, if it is. Time in which the
// broker blocks us does not count as silence: it reads nothing then.
func (w *watchdog) check(now, oldest time.Time, reason string) error {
	switch {
	case reason == "" && !w.since.IsZero():
		w.since, w.clear = time.Time{}, now
	case reason != "" && w.since.IsZero():
		w.since = now
	}
	if reason != "" {
		if age := now.Sub(w.since); age > w.blocked {
			return &Fault{Cause: AlarmedBroker, Err: fmt.Errorf(
				"blocked for %s: the broker blocks publishers: %s", age.Round(time.Millisecond), reason)}
		}
		return nil
	}
	if w.clear.After(oldest) {
		oldest = w.clear
	}
	if age := now.Sub(oldest); age > w.confirm {
		return &Fault{Cause: Silent, Err: fmt.Errorf("no verdict for %s", age.Round(time.Millisecond))}
	}
	return nil
}
