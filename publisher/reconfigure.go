package publisher

import (
	"errors"
	"time"

	"golang.org/x/time/rate"
)

// closed is a channel that is always ready.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Reconfigure has the publisher go on with other options, which must be of the
// same route. It does not wait: what is in flight has StopTimeout to be confirmed,
// so that a healthy broker is sent nothing twice, and the next session is opened
// with the new options. After an error the old ones stay. While there is a pause
// it begins with the end of that.
//
// What has been delayed because of the old options is for the caller to hasten.
func (p *Publisher) Reconfigure(opts Options) error {
	opts.ensureDefaults()
	if err := opts.validate(); err != nil {
		return err
	}
	if err := p.reconfigure(opts.share(1)); err != nil {
		return err
	}
	return p.team.resize(&opts)
}

// reconfigure is Reconfigure of one worker.
func (p *Publisher) reconfigure(opts Options) error {
	p.mu.Lock()
	route := p.opts.Route
	p.mu.Unlock()
	if opts.Route != route {
		return errors.New("a publisher stays with its route")
	}
	c := &p.control
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = &opts
	if c.stop != nil {
		c.stop()
	}
	return nil
}

// adopt takes over the options of a Reconfigure, if there are any. Nothing is
// under way then.
func (p *Publisher) adopt() {
	p.control.mu.Lock()
	next := p.control.next
	p.control.next = nil
	p.control.mu.Unlock()
	if next == nil {
		return
	}
	waits := backoff{min: next.RetryMin, max: next.RetryMax, jitter: next.Jitter}
	if p.pace.full != rate.Limit(next.Rate) || p.pace.ramp != next.RateRamp {
		p.pace = newPace(next.Rate, next.RateRamp)
	}
	p.backoff = waits
	p.window.reconfigure(next, waits)
	p.exchanges = exchanges{own: OwnExchanges(next.Exchange, next.Split), code: next.SplitCode, allowed: next.Allowed}
	clear(p.logged)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opts = *next
	p.stats.RateLimited = next.Rate > 0
}

// reconfigure changes the bounds. A broker that refuses messages goes on being
// spared, but a pause ends.
func (w *window) reconfigure(o *Options, pauses backoff) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.limit == w.most || w.limit > o.Window {
		w.limit = o.Window
	}
	w.share.reconfigure(o.Window, o.ConfirmTimeout)
	pauses.failures, pauses.place = w.pauses.failures, w.pauses.place
	w.most, w.mostBytes, w.pauses = o.Window, o.WindowBytes, pauses
	w.until = time.Time{}
}
