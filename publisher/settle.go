package publisher

import (
	"errors"
	"fmt"
	"time"

	"spoolfs/queue"
)

// settleBatch bounds the verdicts that are settled together.
const settleBatch = 256

// settle reads verdicts until the session ends and settles them in batches: as
// many as have come, so that a lone message does not wait and a thousand share
// one write.
func (r *run) settle() {
	for v := range r.session.Verdicts() {
		batch := append(make([]Verdict, 0, settleBatch), v)
	more:
		for len(batch) < settleBatch {
			select {
			case v, ok := <-r.session.Verdicts():
				if !ok {
					break more
				}
				batch = append(batch, v)
			default:
				break more
			}
		}
		if err := r.settleAll(batch); err != nil {
			// The queue has failed, so there is no use in sending more.
			r.giveUp(err)
			r.stop()
		}
	}
}

func (r *run) settleAll(batch []Verdict) error {
	now := time.Now()
	confirmed := make([]*queue.Lease, 0, len(batch))
	published := make([]time.Time, 0, len(batch)) // of all that have landed
	var oldest time.Time                          // of the confirmed
	for _, v := range batch {
		f := r.land(v.Tag)
		if f.lease == nil {
			continue
		}
		published = append(published, f.at)
		r.p.verdicts.Observe(now.Sub(f.at))
		if v.Outcome == Confirmed && oldest.IsZero() {
			oldest = f.at
		}
		switch class, failed := classOf(v); {
		case !failed, r.p.opts.policyOf(class).message == gone:
			confirmed = append(confirmed, f.lease)
		default:
			if err := r.p.settle(f, class, v.Reason); err != nil {
				r.p.opts.Route.Requeue(confirmed...)
				return err
			}
		}
		if v.Returned {
			r.p.update(func(s *Stats) { s.ReturnedTotal++ })
		}
	}
	landed := len(published)
	if landed > 0 {
		r.p.heard()
		r.p.window.answered(now, published)
	}
	if len(confirmed) > 0 {
		r.p.confirmed(len(confirmed))
		if err := r.p.ack(confirmed); err != nil {
			return err
		}
	}
	if !oldest.IsZero() {
		r.p.window.confirmed(len(confirmed), oldest)
		r.p.logPace()
	}
	r.p.window.release(landed)
	r.p.window.acquit(landed)
	return nil
}

// classOf is the class of a verdict, if it is a failure.
func classOf(v Verdict) (class Class, failed bool) {
	switch {
	case v.Outcome == Rejected:
		return Refused, true
	case v.Returned:
		return Unroutable, true
	}
	return 0, false
}

// confirmed counts what the broker took; the way to it is good, so the next
// failure begins with a short wait.
func (p *Publisher) confirmed(n int) {
	p.update(func(s *Stats) { s.ConfirmedTotal += uint64(n) })
	p.healthy.Store(true)
}

// heard notes that the broker has said what became of a message, which ends an
// outage.
func (p *Publisher) heard() {
	var away time.Time
	p.update(func(s *Stats) { away, s.AwaySince = s.AwaySince, time.Time{} })
	if !away.IsZero() {
		p.opts.Logger.Info("publishing again", "route", p.opts.Route.Name(), "after", time.Since(away).Round(time.Millisecond))
	}
}

// logPace logs that the broker takes messages as fast as before it refused some.
func (p *Publisher) logPace() {
	if !p.slowed.Load() {
		return
	}
	if !p.window.isLow() && p.slowed.Swap(false) {
		p.opts.Logger.Info("the broker takes all messages again", "route", p.opts.Route.Name())
	}
}

// ack settles what is done. When the store was opened again meanwhile, some of
// the leases have ended and the others have not.
func (p *Publisher) ack(leases []*queue.Lease) error {
	err := p.finish(leases...)
	if errors.Is(err, queue.ErrNotLeased) {
		err = nil
		for _, l := range leases {
			err = errors.Join(err, p.unlessEnded(l, p.finish(l)))
		}
	}
	if err != nil {
		p.opts.Route.Requeue(leases...)
	}
	return err
}

// unlessEnded is what is left to do about the error of a settlement. A lease that
// had ended needs nothing: its message is ready again, and has been since the
// store was opened again. What could not be settled is ready again, too: nobody
// else would end its lease.
func (p *Publisher) unlessEnded(l *queue.Lease, err error) error {
	if errors.Is(err, queue.ErrNotLeased) {
		return nil
	}
	if err != nil {
		p.opts.Route.Requeue(l)
	}
	return err
}

// settle does with a message what the policy of its failure says.
func (p *Publisher) settle(f flight, class Class, reason string) error {
	p.count(f.lease, class, reason)
	return p.unlessEnded(f.lease, p.apply(f, class, reason))
}

func (p *Publisher) apply(f flight, class Class, reason string) error {
	if class == Unroutable {
		reason = "returned: " + reason
	}
	switch pol, reason := p.judge(f, class, reason); pol.message {
	case gone:
		return p.opts.Route.Ack(f.lease)
	case dead:
		return p.deadLetter(f.lease, reason)
	case delayed:
		until := p.lazyUntil(f.lease)
		if pol.route == slows {
			until = p.window.rejected(f.at, int(f.lease.Attempts))
		}
		return p.opts.Route.Nack(f.lease, until)
	default:
		p.opts.Route.Requeue(f.lease)
		return nil
	}
}

// count shows in the status what became of a message.
func (p *Publisher) count(l *queue.Lease, class Class, reason string) {
	switch class {
	case Refused:
		if !p.slowed.Swap(true) {
			p.opts.Logger.Warn("the broker refuses messages, and they are sent slower", "route", p.opts.Route.Name(),
				"id", l.ID, "reason", capped(reason), "advice", Rejecting.Advice())
		}
		p.fail(&Fault{Class: Refused, Cause: Rejecting, Err: fmt.Errorf("the broker rejected message %s %s", l.ID, reason)})
	case Invalid:
		p.note(&Fault{Class: Invalid, Cause: BadMessage})
		p.opts.Logger.Error("message set aside", "route", p.opts.Route.Name(), "id", l.ID, "reason", capped(reason))
	}
	p.update(func(s *Stats) {
		switch class {
		case Refused:
			s.RejectedTotal++
		case LazyMessage:
			s.RefusedTotal++
		case Invalid:
			s.InvalidTotal++
		case Expired:
			s.ExpiredTotal++
		}
	})
}

// lazyUntil is when to try a message again that names what is missing: each time
// later, since only a change of a configuration helps.
func (p *Publisher) lazyUntil(l *queue.Lease) time.Time {
	b := backoff{min: p.opts.LazyWait, max: p.opts.LazyMax}
	return time.Now().Add(b.ceiling(int(l.Attempts)))
}
