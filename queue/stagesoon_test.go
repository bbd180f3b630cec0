package queue

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// soon begins to put a message of a file of its own.
func soon(t *testing.T, r *Route, done func(*Stage, error)) (Driver, *Stage) {
	t.Helper()
	s := r.NewStage(NewFileID(), StageInfo{File: "f"})
	d, begun := s.PutSoon(0, messages(s.File(), 1), func(err error) { done(s, err) })
	if !begun {
		t.Fatal("not begun")
	}
	return d, s
}

// TestStage_PutSoon: nobody waits but who drives, who drives brings all that was begun
// to the disk with one sync, and what comes meanwhile with another one.
func TestStage_PutSoon(t *testing.T) {
	fs := &countingFS{FS: vfs.Default}
	q, r := openQueue(t, Options{FS: fs})
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	gate := func() {
		once.Do(func() { close(held) })
		<-release
	}
	before := q.Store().Syncs.Count()
	var all sync.WaitGroup
	put := func() Driver {
		all.Add(1)
		d, _ := soon(t, r, func(s *Stage, err error) {
			defer all.Done()
			if ended, e := s.CommitSoon(); err != nil || e != nil || !ended {
				t.Errorf("put %v, commit %v %v", err, ended, e)
			}
		})
		return d
	}
	put()
	put()
	fs.gate.Store(&gate)
	first := put()
	var driver sync.WaitGroup
	driver.Go(func() { first.Drive(func() {}) })
	<-held
	for range 10 {
		put().Drive(func() { t.Error("a second one waits for the disk") })
	}
	fs.gate.Store(nil)
	close(release)
	all.Wait()
	driver.Wait()
	if got := q.Store().Syncs.Count() - before; got != 2 {
		t.Errorf("%d syncs for 3 files, and 10 that came during the first, want 2", got)
	}
	if leases, err := r.Lease(t.Context(), 20); err != nil || len(leases) != 13 {
		t.Errorf("%d messages are ready, want 13 (%v)", len(leases), err)
	}
}

// TestStage_PutSoonAmongPuts: who waits for the disk and who wants to be told are told,
// whoever drives.
func TestStage_PutSoonAmongPuts(t *testing.T) {
	_, r := openQueue(t, Options{})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				if i%2 == 0 {
					s := r.NewStage(NewFileID(), StageInfo{})
					if err := errors.Join(s.Put(0, messages(s.File(), 1)), s.Commit()); err != nil {
						t.Error(err)
					}
					continue
				}
				done := make(chan error, 1)
				d, s := soon(t, r, func(_ *Stage, err error) { done <- err })
				d.Drive(func() {})
				select {
				case err := <-done:
					if err := errors.Join(err, commitOne(s)); err != nil {
						t.Error(err)
					}
				case <-time.After(time.Minute):
					t.Error("nobody is told")
					return
				}
			}
		})
	}
	all.Wait()
	if stats, err := r.Stats(); err != nil || stats.Ready != 400 {
		t.Errorf("%d messages are ready, want 400 (%v)", stats.Ready, err)
	}
}

// TestStage_PutSoonFails: when the disk fails, all that want to be told are told so, also
// those that nobody drives, and the queue goes on.
func TestStage_PutSoonFails(t *testing.T) {
	full := errorfs.Toggle{Injector: errorfs.ErrInjected.If(errorfs.Writes)}
	q, _, err := Open("store", testOptions(errorfs.Wrap(vfs.NewMem(), &full)))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	r, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 4)
	d, _ := soon(t, r, func(_ *Stage, err error) { told <- err })
	_, _ = soon(t, r, func(_ *Stage, err error) { told <- err })
	full.On()
	d.Drive(func() {})
	for i := range 2 {
		select {
		case err := <-told:
			if !errors.Is(err, ErrFault) {
				t.Errorf("%d: %v", i, err)
			}
		case <-time.After(time.Minute):
			t.Fatal("nobody is told")
		}
	}
	full.Off()
	deadline := time.Now().Add(time.Minute)
	for n := 0; ; n++ {
		s := r.NewStage(NewFileID(), StageInfo{File: fmt.Sprint(n)})
		d, begun := s.PutSoon(0, messages(s.File(), 1), func(err error) { told <- err })
		if begun {
			d.Drive(func() {})
			if err := <-told; err == nil {
				return
			} else if !errors.Is(err, ErrFault) { // as long as nobody has noticed
				t.Fatal(err)
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the queue does not go on")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestStage_PutSoonRefuses: where something else has to be done first, nothing is begun.
func TestStage_PutSoonRefuses(t *testing.T) {
	never := func(error) { t.Error("told of what was not begun") }
	_, r := openQueue(t, Options{Limits: Limits{Messages: 1}})
	s := r.NewStage(NewFileID(), StageInfo{})
	if _, begun := s.PutSoon(0, nil, never); begun {
		t.Error("nothing")
	}
	if _, begun := s.PutSoon(0, messages(s.File(), 2), never); begun {
		t.Error("more than there is room for")
	}
	if err := s.Put(0, messages(s.File(), 1)); err != nil {
		t.Fatal(err)
	}
	if _, begun := s.PutSoon(0, messages(s.File(), 1), never); begun {
		t.Error("in place of what is there")
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, begun := s.PutSoon(0, messages(s.File(), 1), never); begun {
		t.Error("in a stage that has ended")
	}
	if done, err := s.CommitSoon(); done || err != nil {
		t.Errorf("ended twice: %v, %v", done, err)
	}
}
