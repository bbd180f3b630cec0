package publisher

import (
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
	var confirmed []*queue.Lease
	landed, returned := 0, 0
	for _, v := range batch {
		l := r.land(v.Tag)
		if l == nil {
			continue
		}
		landed++
		if v.Outcome == Rejected {
			if err := r.reject(l, v); err != nil {
				return err
			}
			continue
		}
		confirmed = append(confirmed, l)
		if v.Returned {
			returned++
		}
	}
	if len(confirmed) > 0 {
		r.p.confirmed(len(confirmed), returned)
		if err := r.p.opts.Route.Ack(confirmed...); err != nil {
			return err
		}
	}
	r.release(landed)
	r.widen(len(confirmed))
	return nil
}

// confirmed counts what the broker took; the way to it is good, so the next
// failure begins with a short wait.
func (p *Publisher) confirmed(n, returned int) {
	p.update(func(s *Stats) {
		s.ConfirmedTotal += uint64(n)
		s.ReturnedTotal += uint64(returned)
	})
	p.healthy.Store(true)
}

// reject delays a message that the broker would not take.
func (r *run) reject(l *queue.Lease, v Verdict) error {
	b := backoff{min: r.p.opts.RetryMin, max: r.p.opts.RetryMax}
	ceiling := b.ceiling(int(l.Attempts))
	wait := ceiling/2 + r.p.opts.Jitter(ceiling/2)
	r.p.update(func(s *Stats) {
		s.RejectedTotal++
		s.LastError, s.LastErrorTime = capped("the broker rejected message "+string(l.ID)+" "+v.Reason), time.Now()
	})
	return r.p.opts.Route.Nack(l, time.Now().Add(wait))
}
