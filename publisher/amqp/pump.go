package amqp

import (
	"strconv"

	"github.com/rabbitmq/amqp091-go"

	"spoolfs/publisher"
	"spoolfs/queue"
)

// pump turns what the library reports into verdicts, in one goroutine. While
// the channel is open it listens for returns and notices of a blocked
// connection whatever else it waits for, since the library's reader waits for
// it.
//
// The broker returns a message before it confirms it, and the library's reader
// hands over the one before it completes the other. So when a confirm is seen
// here, its return, if any, was seen before; and since returns come in the
// order of publishing, as verdicts do, it is the first of those without a
// verdict.
type pump struct {
	open     func() bool // whether the channel is
	returns  <-chan amqp091.Return
	blocks   <-chan amqp091.Blocking
	blocked  func(reason string)
	inflight *inflight
	verdicts chan<- publisher.Verdict
	closing  <-chan struct{} // closed when nobody waits for verdicts any more

	returned []returned // without a verdict, in the order of publishing
	current  pending    // popped, without a verdict; empty if confirm is nil
}

// returned is a message that the broker gave back.
type returned struct {
	id     queue.ID
	reason string
}

// listen returns when the channel has ended.
func (p *pump) listen() {
	for p.step() {
	}
}

// step waits for the verdict of the next publication and passes it on. It
// returns false when the channel has ended.
func (p *pump) step() bool {
	next, ok := p.inflight.pop()
	if !ok {
		return p.await(p.inflight.more)
	}
	p.current = next
	if !p.await(next.confirm.Done()) {
		return false
	}
	if !next.confirm.Acked() && !p.open() {
		// This is the library's word, not the broker's, and returns will be
		// closed in a moment.
		return p.await(nil)
	}
	if !p.send(p.judge(next)) {
		return false
	}
	p.settled(next)
	return true
}

func (p *pump) await(event <-chan struct{}) bool {
	return p.wait(event, nil, publisher.Verdict{})
}

func (p *pump) send(v publisher.Verdict) bool {
	return p.wait(nil, p.verdicts, v)
}

// wait waits until event has come or out has taken v. It returns false when
// the channel has ended before.
func (p *pump) wait(event <-chan struct{}, out chan<- publisher.Verdict, v publisher.Verdict) bool {
	for {
		select {
		case <-event:
			return true
		case out <- v:
			return true
		case r, ok := <-p.returns:
			if !ok {
				return false
			}
			p.noteReturn(r)
		case b, ok := <-p.blocks:
			p.noteBlocking(b, ok)
		}
	}
}

func (p *pump) noteReturn(r amqp091.Return) {
	p.returned = append(p.returned, returned{
		id:     queue.ID(r.MessageId),
		reason: strconv.Itoa(int(r.ReplyCode)) + " " + r.ReplyText,
	})
}

func (p *pump) noteBlocking(b amqp091.Blocking, ok bool) {
	switch {
	case !ok:
		p.blocks = nil
	case !b.Active:
		p.blocked("")
	case b.Reason == "":
		p.blocked("no reason given")
	default:
		p.blocked(b.Reason)
	}
}

func (p *pump) judge(c pending) publisher.Verdict {
	v := publisher.Verdict{Tag: c.tag, Outcome: publisher.Rejected}
	if c.confirm.Acked() {
		v.Outcome = publisher.Confirmed
	}
	if p.wasReturned(c) {
		v.Returned, v.Reason = true, p.returned[0].reason
	}
	return v
}

func (p *pump) wasReturned(c pending) bool {
	return len(p.returned) > 0 && p.returned[0].id == c.id
}

// settled forgets a publication that needs no verdict any more.
func (p *pump) settled(c pending) {
	p.current = pending{}
	if p.wasReturned(c) {
		p.returned = p.returned[1:]
	}
}

// finish tells what is still known when the channel has ended: what the broker
// confirmed before. All else is unknown; it returns how many those are.
func (p *pump) finish() (unknown int) {
	for c, ok := p.rest(); ok; c, ok = p.rest() {
		v := p.judge(c)
		p.settled(c)
		if v.Outcome != publisher.Confirmed {
			unknown++
			continue
		}
		select {
		case p.verdicts <- v: // room comes first, also when closing
			continue
		default:
		}
		select {
		case p.verdicts <- v:
		case <-p.closing:
			return unknown
		}
	}
	return unknown
}

func (p *pump) rest() (pending, bool) {
	if p.current.confirm != nil {
		return p.current, true
	}
	return p.inflight.pop()
}
