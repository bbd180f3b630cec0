package queue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("QUEUE_TEST_HOLD"); dir != "" {
		holdStore(dir)
		return
	}
	if arg := os.Getenv("QUEUE_TEST_KILL"); arg != "" {
		killChild(arg)
		return
	}
	goleak.VerifyTestMain(m,
		// A database that Pebble itself has broken (a panic or Fatalf of its own
		// under its lock, when a block goes bad) may never close: engine.close
		// gives it its time and leaves it. It has stopped everything by then but
		// what waits for the lock that Close holds while it waits for its tables.
		goleak.IgnoreAnyFunction("spoolfs/queue.(*engine).closePebble"),
		goleak.IgnoreAnyFunction("github.com/cockroachdb/pebble/v2.(*DB).collectTableStats"),
		goleak.IgnoreTopFunction("github.com/cockroachdb/pebble/v2/internal/genericcache.(*shard[...]).releaseLoop"))
}

func openQueue(t testing.TB, opts Options) (*Queue, *Route) {
	t.Helper()
	q, _, err := Open(t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	r, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	return q, r
}

// messages makes n messages of one file.
func messages(f FileID, n int) []Message {
	ms := make([]Message, n)
	for i := range ms {
		line := uint32(i + 1)
		ms[i] = Message{ID: f.MessageID(line), Line: line, Body: fmt.Appendf(nil, "line %d", line), Ingested: time.Now()}
	}
	return ms
}

func putStage(t testing.TB, r *Route, n int) *Stage {
	t.Helper()
	f := NewFileID()
	s := r.NewStage(f, StageInfo{File: "f", UID: 7})
	if err := s.Put(0, messages(f, n)); err != nil {
		t.Fatal(err)
	}
	return s
}

func commit(t testing.TB, s *Stage) {
	t.Helper()
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
}

func ids(leases []*Lease) string {
	var b strings.Builder
	for _, l := range leases {
		fmt.Fprintln(&b, l.ID)
	}
	return b.String()
}

func stageIDs(stages ...*Stage) string {
	var b strings.Builder
	for _, s := range stages {
		for i := range s.Len() {
			fmt.Fprintln(&b, s.File().MessageID(uint32(i+1)))
		}
	}
	return b.String()
}

// TestRoute_Order proves Q4: the order is that of the Puts, not of the commits.
func TestRoute_Order(t *testing.T) {
	_, r := openQueue(t, Options{})
	a, b, c := putStage(t, r, 2), putStage(t, r, 3), putStage(t, r, 1)
	for _, s := range []*Stage{c, a, b} {
		commit(t, s)
	}
	if got, want := ids(leaseAll(t, r, 6)), stageIDs(a, b, c); got != want {
		t.Errorf("leased\n%swant\n%s", got, want)
	}
}

// TestRoute_WaitsForYoungStage proves the second half of Q4.
func TestRoute_WaitsForYoungStage(t *testing.T) {
	_, r := openQueue(t, Options{CommitGrace: time.Hour})
	a, b := putStage(t, r, 1), putStage(t, r, 1)
	commit(t, b)
	leases, wait, err := r.tryLease(10)
	if err != nil || len(leases) > 0 || wait <= 0 || wait > time.Hour {
		t.Fatalf("tryLease = %v, %v, %v before the older stage was committed", leases, wait, err)
	}
	commit(t, a)
	if got, want := ids(leaseAll(t, r, 2)), stageIDs(a, b); got != want {
		t.Errorf("leased\n%swant\n%s", got, want)
	}
}

// TestRoute_LateCommitGoesNext proves that Lease waits no longer than
// CommitGrace (Q4), and Q5.
func TestRoute_LateCommitGoesNext(t *testing.T) {
	_, r := openQueue(t, Options{CommitGrace: 20 * time.Millisecond})
	late, b, c := putStage(t, r, 1), putStage(t, r, 1), putStage(t, r, 1)
	commit(t, b)
	if got, want := ids(leaseAll(t, r, 1)), stageIDs(b); got != want {
		t.Fatalf("leased %s, want %s", got, want)
	}
	commit(t, c)
	commit(t, late)
	if got, want := ids(leaseAll(t, r, 2)), stageIDs(late, c); got != want {
		t.Errorf("leased\n%swant\n%s", got, want)
	}
	if n := r.q.Store().LateTotal; n != 1 {
		t.Errorf("%d messages are counted as late, want 1", n)
	}
}

// TestStage_AppendsAfterBeingPassedOver: what is put into a stage that Lease
// has passed over is neither leased early nor stranded.
func TestStage_AppendsAfterBeingPassedOver(t *testing.T) {
	_, r := openQueue(t, Options{CommitGrace: -1})
	s := putStage(t, r, 1)
	if leases, _, err := r.tryLease(10); err != nil || len(leases) > 0 {
		t.Fatalf("leased %v, %v from an open stage", leases, err)
	}
	if err := s.Put(1, messages(s.File(), 3)[1:]); err != nil {
		t.Fatal(err)
	}
	if leases, _, err := r.tryLease(10); err != nil || len(leases) > 0 {
		t.Fatalf("leased %v, %v from an open stage", leases, err)
	}
	commit(t, s)
	if got, want := ids(leaseAll(t, r, 3)), stageIDs(s); got != want {
		t.Errorf("leased\n%swant\n%s", got, want)
	}
}

// TestRoute_SettleKeepsID proves Q3 without crashes.
func TestRoute_SettleKeepsID(t *testing.T) {
	_, r := openQueue(t, Options{})
	s := putStage(t, r, 1)
	commit(t, s)
	want := s.File().MessageID(1)
	l := leaseAll(t, r, 1)[0]
	r.Requeue(l)
	l = leaseAll(t, r, 1)[0]
	if l.ID != want || l.Attempts != 0 {
		t.Errorf("after Requeue: %s with %d attempts, want %s with 0", l.ID, l.Attempts, want)
	}
	if err := r.Nack(l, time.Now().Add(10*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Stats(); err != nil || got.Delayed != 1 || got.Ready != 0 || got.Leased != 0 {
		t.Errorf("after Nack: %+v, %v", got, err)
	}
	l = leaseAll(t, r, 1)[0]
	if l.ID != want || l.Attempts != 1 {
		t.Errorf("after Nack: %s with %d attempts, want %s with 1", l.ID, l.Attempts, want)
	}
	if err := r.DeadLetter(l, "too-large"); err != nil {
		t.Fatal(err)
	}
	for m, err := range r.Dead() {
		if err != nil || m.ID != want || m.Reason != "too-large" || string(m.Body) != "line 1" || m.Attempts != 1 {
			t.Errorf("dead letter is %+v, %v", m, err)
		}
	}
	if got, _ := r.Stats(); got.Dead != 1 || got.Leased != 0 || got.Delayed != 0 {
		t.Errorf("after DeadLetter: %+v", got)
	}
}

// TestStage_DiscardEmpty: a stage that was put without entries, as the very first
// of a store, leaves no row behind when it ends.
func TestStage_DiscardEmpty(t *testing.T) {
	for _, end := range []func(*Stage) error{(*Stage).Discard, (*Stage).Commit} {
		dir := t.TempDir()
		q, _, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := q.Route("x")
		if err != nil {
			t.Fatal(err)
		}
		s := r.NewStage(NewFileID(), StageInfo{})
		s.SetInfo("held", true)
		if err := errors.Join(s.Put(0, nil), end(s), q.Close()); err != nil {
			t.Fatal(err)
		}
		q, stages, err := Open(dir, Options{})
		if err != nil || len(stages) != 0 {
			t.Errorf("%d stages are there again, %v", len(stages), err)
		}
		q.Close()
	}
}

// TestStage_Discard proves the second half of Q2.
func TestStage_Discard(t *testing.T) {
	_, r := openQueue(t, Options{})
	f := NewFileID()
	s := r.NewStage(f, StageInfo{})
	ms := messages(f, 3)
	ms[1].Reason = "not-json"
	if err := s.Put(0, ms); err != nil {
		t.Fatal(err)
	}
	if got, _ := r.Stats(); got.Staged != 3 || got.Dead != 0 || got.Ready != 0 {
		t.Errorf("staged: %+v", got)
	}
	for m := range r.Dead() {
		t.Errorf("dead letter %s of a stage is visible", m.ID)
	}
	if err := s.Discard(); err != nil {
		t.Fatal(err)
	}
	if got, _ := r.Stats(); got != (Stats{}) {
		t.Errorf("after Discard: %+v", got)
	}
	if err := scanCounters(r); err != nil {
		t.Error(err)
	}
}

// TestStage_PutReplaces: a Put may cut what earlier Puts stored, wherever the
// borders between them were.
func TestStage_PutReplaces(t *testing.T) {
	for keep := range 7 {
		_, r := openQueue(t, Options{})
		f := NewFileID()
		all := messages(f, 9)
		s := r.NewStage(f, StageInfo{})
		for _, ms := range [][]Message{all[:2], all[2:4], all[4:6]} {
			putStage(t, r, 1) // takes the number between two Puts
			if err := s.Put(s.Len(), ms); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Put(keep, all[6:]); err != nil {
			t.Fatal(err)
		}
		commit(t, s)
		want := ""
		for _, m := range append(all[:keep:keep], all[6:]...) {
			want += string(m.ID) + "\n"
		}
		if got := ids(leaseAll(t, r, keep+3)); got != want {
			t.Errorf("keep %d: leased\n%swant\n%s", keep, got, want)
		}
		if err := scanCounters(r); err != nil {
			t.Errorf("keep %d: %v", keep, err)
		}
	}
}

// TestQueue_HandsBackStages: what is open at a crash or stop comes back in the
// order of the last Put, with what it needs to be told apart.
func TestQueue_HandsBackStages(t *testing.T) {
	dir := t.TempDir()
	q, _, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	a, b, done := putStage(t, r, 2), putStage(t, r, 1), putStage(t, r, 1)
	commit(t, done)
	if err := a.Put(2, messages(a.File(), 3)[2:]); err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	q, stages, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if len(stages) != 2 || stages[0].File() != b.File() || stages[1].File() != a.File() {
		t.Fatalf("handed back %d stages, want b and a", len(stages))
	}
	if got, want := stages[0].Info(), (StageInfo{File: "f", UID: 7}); got != want {
		t.Errorf("info is %+v, want %+v", got, want)
	}
	r, _ = q.Route("default")
	if got, _ := r.Stats(); got.Staged != 4 || got.Ready != 1 {
		t.Errorf("after reopening: %+v", got)
	}
	commit(t, stages[0])
	commit(t, stages[1])
	want := a.File().MessageID(1) // its first Put came first of all
	if got := leaseAll(t, r, 5); got[0].ID != want {
		t.Errorf("first is %s, want %s", got[0].ID, want)
	}
}

// TestRoute_LeaseWaits: Lease wakes for what comes, and ends with its context
// and with the queue.
func TestRoute_LeaseWaits(t *testing.T) {
	q, r := openQueue(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Lease(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Lease with an ended context: %v", err)
	}
	got := make(chan error)
	lease := func() {
		_, err := r.Lease(t.Context(), 1)
		got <- err
	}
	go lease()
	if err := r.Append(messages(NewFileID(), 1)); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("Lease of what was appended: %v", err)
	}
	go lease()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; !errors.Is(err, ErrClosed) {
		t.Errorf("Lease during Close: %v, want %v", err, ErrClosed)
	}
}

// TestRoute_Concurrent runs many writers and two consumers; the race detector
// watches.
func TestRoute_Concurrent(t *testing.T) {
	_, r := openQueue(t, Options{})
	const writers, files = 16, 25
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range files {
				s := putStage(t, r, 2)
				commit(t, s)
			}
		})
	}
	seen := make(chan ID, writers*files*2)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var left sync.WaitGroup
	left.Add(writers * files * 2)
	for range 2 {
		go func() {
			for {
				leases, err := r.Lease(ctx, 7)
				if err != nil {
					return
				}
				for _, l := range leases {
					seen <- l.ID
				}
				if err := r.Ack(leases...); err != nil {
					t.Error(err)
				}
				left.Add(-len(leases))
			}
		}()
	}
	wg.Wait()
	left.Wait()
	cancel()
	close(seen)
	unique := map[ID]bool{}
	for id := range seen {
		if unique[id] {
			t.Errorf("%s was leased twice", id)
		}
		unique[id] = true
	}
	if got, _ := r.Stats(); got != (Stats{}) {
		t.Errorf("at the end: %+v", got)
	}
}

// TestOpen_Locked: a store has one owner, and a dying one is waited for.
func TestOpen_Locked(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "QUEUE_TEST_HOLD="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(dir, Options{LockTimeout: -1}); !errors.Is(err, ErrLocked) {
		t.Errorf("Open of a store in use: %v, want %v", err, ErrLocked)
	}
	go func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	q, _, err := Open(dir, Options{LockTimeout: 10 * time.Second})
	if err != nil {
		t.Fatalf("Open of a store whose owner dies: %v", err)
	}
	q.Close()
}

// holdStore is the other process of TestOpen_Locked.
func holdStore(dir string) {
	q, _, err := Open(dir, Options{})
	if err != nil {
		os.Exit(1)
	}
	defer q.Close()
	os.Stdout.WriteString("x")
	select {}
}

// TestOpen_NewerStore: a store of a newer version is refused and not touched
// (G9).
func TestOpen_NewerStore(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, formatFile)
	if err := os.WriteFile(name, []byte("spoolfs store 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(dir, Options{}); !errors.Is(err, ErrNewerStore) {
		t.Errorf("Open: %v, want %v", err, ErrNewerStore)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the store has been touched: %v, %v", entries, err)
	}
}

// TestStage_PutFailsLoudly: when the disk takes no more, Put says so, and what
// was put before is there after a restart (the trap is in logger.go).
func TestStage_PutFailsLoudly(t *testing.T) {
	mem := vfs.NewCrashableMem()
	full := errorfs.Toggle{Injector: errorfs.ErrInjected.If(errorfs.Writes)}
	q, _, err := Open("store", testOptions(errorfs.Wrap(mem, &full)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	before := putStage(t, r, 1)
	full.On()
	s := r.NewStage(NewFileID(), StageInfo{})
	if err := s.Put(0, messages(s.File(), 1)); !errors.Is(err, ErrFault) {
		t.Errorf("Put on a failing disk: %v, want %v", err, ErrFault)
	}
	if err := s.Put(0, messages(s.File(), 1)); !errors.Is(err, ErrFault) {
		t.Errorf("second Put on a failing disk: %v, want %v", err, ErrFault)
	}
	after := mem.CrashClone(vfs.CrashCloneCfg{})
	full.Off()
	q.Close()
	q, stages, err := Open("store", testOptions(after))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if len(stages) != 1 || stages[0].File() != before.File() {
		t.Errorf("handed back %d stages, want the one that was put", len(stages))
	}
}

// putOne is Put, by way of PutSoon where that is possible, each other time.
func putOne(s *Stage, keep int, add []Message) error {
	if (keep+len(add))%3 == 0 {
		return s.Put(keep, add)
	}
	done := make(chan error, 1)
	d, begun := s.PutSoon(keep, add, func(err error) { done <- err })
	if !begun {
		return s.Put(keep, add)
	}
	d.Drive(func() {})
	return <-done
}

// commitOne is Commit, by way of CommitSoon where that is possible, each other time.
func commitOne(s *Stage) error {
	if s.Len()%3 == 0 {
		return s.Commit()
	}
	if done, err := s.CommitSoon(); done {
		return err
	}
	return s.Commit()
}
