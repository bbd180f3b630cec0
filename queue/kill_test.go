package queue

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestQueue_KillLosesNothing kills a process that works on a store on the real
// disk, again and again (D1, D2). It proves Q1 to Q6 where the crash model does not
// reach: Pebble on the operating system's files.
func TestQueue_KillLosesNothing(t *testing.T) {
	kills := 30
	if chaos() {
		kills = 300
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	k := &killRun{t: t, dir: t.TempDir(), book: newLedger(), leased: map[ID]int{}, gone: map[ID]bool{}}
	for k.round = range kills {
		k.work(time.Duration(20+rng.IntN(180)) * time.Millisecond)
		if k.reopen(rng.IntN(4) == 0); t.Failed() {
			return
		}
	}
	k.reopen(true)
	t.Logf("%d kills, %d messages stored, %d settled", kills, len(k.book.stored), len(k.book.released))
	if len(k.book.stored) < 10*kills || len(k.book.released) == 0 {
		t.Error("the test does not test")
	}
}

// killRun is the parent's side.
type killRun struct {
	t     *testing.T
	dir   string
	round int
	book  *ledger

	units  [][]ID      // what one Put or Append was to store
	leased map[ID]int  // the round in which a message was last leased
	gone   map[ID]bool // its Ack has survived
}

// work lets a child work on the store for a while after it has opened it, and
// kills it.
func (k *killRun) work(life time.Duration) {
	k.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("QUEUE_TEST_KILL=%s %d", k.dir, k.round))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	stuck := time.AfterFunc(bound, func() { cmd.Process.Kill() })
	defer stuck.Stop()
	killed := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "open" {
			killed = true
			time.AfterFunc(life, func() { cmd.Process.Kill() })
			continue
		}
		k.read(strings.Fields(lines.Text()))
	}
	if err := cmd.Wait(); !killed || err == nil || err.Error() != "signal: killed" {
		k.t.Fatalf("child ended: %v", err)
	}
}

// read takes down what the child reports. A line that the kill has torn may be
// the last; each report begins with a count of its words.
func (k *killRun) read(words []string) {
	if len(words) < 3 || words[0] != fmt.Sprint(len(words)) {
		return
	}
	ids := make([]ID, len(words)-2)
	for i, w := range words[2:] {
		ids[i] = ID(w)
	}
	switch words[1] {
	case "try":
		k.book.know(ids...)
		k.units = append(k.units, ids)
	case "stored":
		k.book.store(ids...)
	case "acking":
		for _, id := range ids {
			if last, ok := k.leased[id]; ok && last == k.round {
				k.t.Errorf("%s was leased twice in round %d", id, k.round)
			}
			k.leased[id] = k.round
		}
		k.book.release(ids...)
	default:
		k.t.Errorf("child: %s", words)
	}
}

// reopen looks at what the kill has left, and perhaps publishes all of it.
func (k *killRun) reopen(drain bool) {
	k.t.Helper()
	q, stages, err := Open(k.dir, Options{})
	if err != nil {
		k.t.Fatalf("open after %d kills: %v", k.round+1, err)
	}
	defer q.Close()
	for _, s := range stages {
		if err := s.Commit(); err != nil {
			k.t.Fatal(err)
		}
	}
	if err := k.book.check(q); err != nil {
		k.t.Fatalf("after %d kills: %v", k.round+1, err)
	}
	found, err := scanIDs(q)
	if err != nil {
		k.t.Fatal(err)
	}
	k.compare(found)
	if drain {
		for _, r := range allRoutes(q) {
			k.drain(r)
		}
	}
}

// compare checks that each Put and Append is there whole or not at all, and
// that what has gone does not come back.
func (k *killRun) compare(found map[ID]int) {
	k.t.Helper()
	for _, unit := range k.units {
		n := 0
		for _, id := range unit {
			if found[id] > 0 || k.book.released[id] {
				n++
			}
		}
		if n != 0 && n != len(unit) {
			k.t.Errorf("after %d kills %d of %v are there", k.round+1, n, unit)
		}
	}
	for id := range k.gone {
		if found[id] > 0 {
			k.t.Errorf("after %d kills %s is there again", k.round+1, id)
		}
	}
	for id := range k.book.released {
		if found[id] == 0 {
			k.gone[id] = true
		}
	}
}

// drain leases and acks all, and checks the order within each file.
func (k *killRun) drain(r *Route) {
	k.t.Helper()
	last := map[string]uint32{}
	for {
		s, err := r.Stats()
		if err != nil {
			k.t.Fatal(err)
		}
		if s.Ready+s.Delayed == 0 {
			if s.Staged > 0 {
				k.t.Errorf("%d messages are staged though all stages are committed", s.Staged)
			}
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		leases, err := r.Lease(ctx, 1000)
		cancel()
		if err != nil {
			k.t.Fatal(err)
		}
		for _, l := range leases {
			f, line, _ := l.ID.split()
			if l.Attempts == 0 && last[f.String()] >= line {
				k.t.Errorf("%s after line %d", l.ID, last[f.String()])
			}
			last[f.String()] = max(line, last[f.String()])
			k.book.release(l.ID)
		}
		if err := r.Ack(leases...); err != nil {
			k.t.Fatal(err)
		}
	}
}

// killChild is the child: it works and reports until it is killed.
func killChild(arg string) {
	dir, round, _ := strings.Cut(arg, " ")
	q, stages, err := Open(dir, Options{})
	if err == nil {
		for _, s := range stages {
			err = commitOne(s)
		}
	}
	c := &killChildRun{q: q}
	if c.die(err) {
		return
	}
	fmt.Println("open")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { c.write(i, round) })
	}
	for i := range 2 {
		wg.Go(func() { c.consume(i) })
	}
	wg.Wait()
}

type killChildRun struct {
	q  *Queue
	mu sync.Mutex
}

func (c *killChildRun) die(err error) bool {
	if err != nil {
		c.report("error", ID(strings.ReplaceAll(err.Error(), " ", "_")))
	}
	return err != nil
}

// report writes a line. One write(2) each, so that the kill can tear the last
// one only.
func (c *killChildRun) report(what string, ids ...ID) {
	if len(ids) == 0 {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", len(ids)+2, what)
	for _, id := range ids {
		b.WriteString(" " + string(id))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	os.Stdout.WriteString(b.String() + "\n")
}

// write appends, or stages in instalments and commits. It leaves a stage open
// now and then.
func (c *killChildRun) write(worker int, round string) {
	r, err := c.q.Route(fmt.Sprint("route", worker%3))
	for n := 0; !c.die(err); n++ {
		f := NewFileID()
		ms := messages(f, 4)
		if n%3 == 0 {
			c.report("try", messageIDs(ms)...)
			if err = r.Append(ms); err == nil {
				c.report("stored", messageIDs(ms)...)
			}
			continue
		}
		s := r.NewStage(f, StageInfo{File: round})
		for i := 0; i < len(ms) && err == nil; i += 2 {
			c.report("try", messageIDs(ms[i:i+2])...)
			if err = putOne(s, i, ms[i:i+2]); err == nil {
				c.report("stored", messageIDs(ms[i:i+2])...)
			}
		}
		if err == nil && n%10 != 9 {
			err = commitOne(s)
		}
	}
}

// consume leases and settles in several ways.
func (c *killChildRun) consume(worker int) {
	for n := worker; ; n++ {
		r, err := c.q.Route(fmt.Sprint("route", n%3))
		if c.die(err) {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		leases, err := r.Lease(ctx, 8)
		cancel()
		if ctx.Err() != nil && err != nil {
			continue
		}
		if c.die(err) {
			return
		}
		for i, l := range leases {
			switch {
			case i == 0 && n%4 == 0:
				err = r.Nack(l, time.Now().Add(time.Millisecond))
			case i == 1 && n%4 == 0:
				err = r.DeadLetter(l, "too-large")
			default:
				c.report("acking", l.ID)
				err = r.Ack(l)
			}
			if c.die(err) {
				return
			}
		}
	}
}
