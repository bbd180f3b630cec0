package amqp

import (
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/rabbitmq/amqp091-go"

	"spoolfs/publisher"
	"spoolfs/queue"
)

// scriptedConfirm is a confirm that comes when the test wants it.
type scriptedConfirm struct {
	done  chan struct{}
	acked bool
}

func newConfirm() *scriptedConfirm { return &scriptedConfirm{done: make(chan struct{})} }

func (c *scriptedConfirm) Done() <-chan struct{} { return c.done }
func (c *scriptedConfirm) Acked() bool           { return c.acked }

func (c *scriptedConfirm) settle(acked bool) {
	c.acked = acked
	close(c.done)
}

// scriptedChannel is what a pump sees of the library.
type scriptedChannel struct {
	pump     pump
	closed   bool
	returns  chan amqp091.Return
	blocks   chan amqp091.Blocking
	verdicts chan publisher.Verdict
	closing  chan struct{}
	blocked  string
	confirms []*scriptedConfirm
}

// newScriptedChannel starts a pump with a number of publications in flight;
// their ids are "1", "2" and so on.
func newScriptedChannel(window, published int) *scriptedChannel {
	c := &scriptedChannel{
		returns:  make(chan amqp091.Return),
		blocks:   make(chan amqp091.Blocking),
		verdicts: make(chan publisher.Verdict, window),
		closing:  make(chan struct{}),
	}
	c.pump = pump{
		open:     func() bool { return !c.closed },
		returns:  c.returns,
		blocks:   c.blocks,
		blocked:  func(reason string) { c.blocked = reason },
		inflight: newInflight(),
		verdicts: c.verdicts,
		closing:  c.closing,
	}
	for i := range published {
		c.confirms = append(c.confirms, newConfirm())
		c.pump.inflight.push(pending{uint64(i + 1), idOf(i + 1), c.confirms[i]})
	}
	go func() {
		c.pump.listen()
		c.pump.finish()
		close(c.verdicts)
	}()
	return c
}

func idOf(tag int) queue.ID { return queue.ID(rune('0' + tag)) }

// end is what the library does at the end of a channel, in its order.
func (c *scriptedChannel) end() {
	c.closed = true
	for _, confirm := range c.confirms {
		select {
		case <-confirm.done:
		default:
			confirm.settle(false)
		}
	}
	synctest.Wait()
	close(c.returns)
	close(c.blocks)
}

func (c *scriptedChannel) want(t *testing.T, want ...publisher.Verdict) {
	t.Helper()
	var got []publisher.Verdict
	for v := range c.verdicts {
		got = append(got, v)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The library turns what is pending at the end into nacks.
func TestPump_PendingAtTheEndIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScriptedChannel(10, 3)
		c.confirms[0].settle(false)
		synctest.Wait()
		c.end()
		c.want(t, publisher.Verdict{Tag: 1, Outcome: publisher.Rejected})
	})
}

// A confirm behind one that has not come is still a confirm, and so is one
// whose verdict waits for a reader.
func TestPump_ConfirmedBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScriptedChannel(0, 4)
		c.confirms[0].settle(true)
		c.confirms[3].settle(true)
		synctest.Wait()
		c.end()
		c.want(t,
			publisher.Verdict{Tag: 1, Outcome: publisher.Confirmed},
			publisher.Verdict{Tag: 4, Outcome: publisher.Confirmed})
	})
}

// Returns are kept for their verdict, also while no verdict can be delivered,
// and one without a verdict is not taken for that of a later message.
func TestPump_Returns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScriptedChannel(0, 5)
		c.confirms[0].settle(true)
		for _, tag := range []int{2, 4, 5} {
			c.returns <- amqp091.Return{MessageId: string(idOf(tag)), ReplyCode: 312, ReplyText: "NO_ROUTE"}
		}
		c.confirms[1].settle(true)
		c.confirms[2].settle(true)
		c.confirms[4].settle(true)
		c.end()
		c.want(t,
			publisher.Verdict{Tag: 1, Outcome: publisher.Confirmed},
			publisher.Verdict{Tag: 2, Outcome: publisher.Confirmed, Returned: true, Reason: "312 NO_ROUTE"},
			publisher.Verdict{Tag: 3, Outcome: publisher.Confirmed},
			publisher.Verdict{Tag: 5, Outcome: publisher.Confirmed, Returned: true, Reason: "312 NO_ROUTE"})
	})
}

// The verdict that could not be delivered when the channel ended is the same
// afterwards.
func TestPump_ReturnedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScriptedChannel(0, 1)
		c.returns <- amqp091.Return{MessageId: "1", ReplyCode: 312, ReplyText: "NO_ROUTE"}
		c.confirms[0].settle(true)
		synctest.Wait()
		c.end()
		c.want(t, publisher.Verdict{Tag: 1, Outcome: publisher.Confirmed, Returned: true, Reason: "312 NO_ROUTE"})
	})
}

func TestPump_Blocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScriptedChannel(0, 1)
		for _, b := range []struct {
			amqp091.Blocking
			want string
		}{
			{amqp091.Blocking{Active: true, Reason: "low on disk"}, "low on disk"},
			{amqp091.Blocking{Active: false}, ""},
			{amqp091.Blocking{Active: true}, "no reason given"},
		} {
			c.blocks <- b.Blocking
			synctest.Wait()
			if c.blocked != b.want {
				t.Errorf("got %q, want %q", c.blocked, b.want)
			}
		}
		c.end()
		c.want(t)
	})
}

// Nobody reads, and Close was called.
func TestPump_ClosingDropsVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScriptedChannel(1, 5)
		for _, confirm := range c.confirms {
			confirm.settle(true)
		}
		synctest.Wait()
		close(c.closing)
		c.end()
		synctest.Wait()
		c.want(t, publisher.Verdict{Tag: 1, Outcome: publisher.Confirmed})
	})
}
