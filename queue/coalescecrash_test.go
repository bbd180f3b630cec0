package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestRoute_CoalesceCrash writes, settles and loses messages about a few subjects in a route
// that coalesces, and goes on again and again with what a crash leaves of the disk: what is
// not there was acknowledged, or has a later message about the same, and is counted; the
// counters equal a scan; and in the end the last message about each subject is there.
func TestRoute_CoalesceCrash(t *testing.T) {
	rounds := 40
	if chaos() {
		rounds = 1000
	}
	for _, order := range []Order{FIFO, NewestFirst} {
		t.Run(string(order), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			c := &coalesceRun{t: t, order: order, rng: rand.New(rand.NewPCG(seed, 0)), fs: vfs.NewCrashableMem(), acked: map[ID]bool{}, dead: map[ID]bool{}}
			for range rounds {
				c.round()
			}
			if c.undone == 0 || c.replaced == 0 {
				t.Errorf("crashes have undone %d times, %d messages were replaced: the test does not test", c.undone, c.replaced)
			}
		})
	}
}

// coalesceRun is a run of TestRoute_CoalesceCrash.
type coalesceRun struct {
	t        *testing.T
	order    Order
	rng      *rand.Rand
	fs       *vfs.MemFS
	stored   []written // their Put or Append has returned, in the order of that
	acked    map[ID]bool
	dead     map[ID]bool
	before   Stats
	undone   int
	replaced uint64
}

// written is a message and what it is about.
type written struct {
	id      ID
	subject string
}

func (c *coalesceRun) round() {
	q, stages, err := Open("store", testOptions(c.fs))
	if err != nil {
		c.t.Fatal(err)
	}
	defer q.Close()
	r, err := q.Route("default")
	if err != nil {
		c.t.Fatal(err)
	}
	setOptions(c.t, r, RouteOptions{Order: c.order, Coalesce: true})
	for _, s := range stages {
		commit(c.t, s)
	}
	c.check(r)
	for range c.rng.IntN(12) {
		switch c.rng.IntN(7) {
		case 0:
			f := NewFileID()
			ms := about(f, c.subject(), c.subject())
			for i := range ms {
				ms[i].UID = 7
			}
			if err := r.Append(ms); err != nil {
				c.t.Fatal(err)
			}
			c.note(f, ms)
		case 1, 2:
			c.settle(r)
		case 3:
			if err := q.tend(); err != nil {
				c.t.Fatal(err)
			}
		default:
			c.file(r)
		}
	}
	c.check(r)
	c.before, _ = r.Stats()
	c.replaced = max(c.replaced, c.before.Coalesced)
	c.fs = c.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.rng.IntN(101), RNG: c.rng})
}

func (c *coalesceRun) subject() string { return fmt.Sprint(c.rng.IntN(4)) }

func (c *coalesceRun) note(f FileID, ms []Message) {
	for i, m := range ms {
		c.stored = append(c.stored, written{f.MessageID(uint32(i + 1)), m.Subject})
	}
}

// file writes a file, in instalments or at once.
func (c *coalesceRun) file(r *Route) {
	var subjects []string
	for range 1 + c.rng.IntN(3) {
		subjects = append(subjects, c.subject())
	}
	s := stageAbout(c.t, r, 7, subjects...)
	c.note(s.File(), about(s.File(), subjects...))
	if c.rng.IntN(3) == 0 {
		if err := s.CommitFirst(1+c.rng.IntN(len(subjects)), 10); err != nil {
			c.t.Fatal(err)
		}
	}
	commit(c.t, s)
}

// settle leases messages and has each meet one of the ends that there are.
func (c *coalesceRun) settle(r *Route) {
	leases, _, err := r.tryLease(3)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.rng.IntN(2) == 0 {
		c.file(r) // while they are leased
	}
	for _, l := range leases {
		switch c.rng.IntN(5) {
		case 0:
			err = r.Nack(l, time.Now())
		case 1:
			r.Requeue(l)
		case 2:
			c.dead[l.ID] = true
			err = r.DeadLetter(l, "no")
		case 3: // what a crash leaves leased
		default:
			c.acked[l.ID] = true
			err = r.Ack(l)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

// check compares with what was stored, the youngest first.
func (c *coalesceRun) check(r *Route) {
	c.t.Helper()
	if err := scanCounters(r); err != nil {
		c.t.Fatal(err)
	}
	s, err := r.Stats()
	if err != nil {
		c.t.Fatal(err)
	}
	if s != c.before {
		c.undone++
	}
	there := map[ID]bool{}
	for _, state := range []State{Pending, Delayed, Dead} {
		for _, id := range listed(c.t, r, state, Place{}) {
			if there[id] {
				c.t.Fatalf("%s is there twice", id)
			}
			there[id] = true
		}
	}
	later := map[string]bool{}
	lost, gone := uint64(0), uint64(0)
	for i := len(c.stored) - 1; i >= 0; i-- {
		w := c.stored[i]
		switch {
		case there[w.id]:
		case c.acked[w.id]:
			gone++
		case !later[w.subject]:
			c.t.Fatalf("%s, the last message about %s, is lost", w.id, w.subject)
		default:
			lost++
		}
		later[w.subject] = true
	}
	if lost > s.Coalesced || s.Coalesced > lost+gone {
		c.t.Fatalf("%d messages are lost and %d gone, %d were counted as replaced", lost, gone, s.Coalesced)
	}
}
