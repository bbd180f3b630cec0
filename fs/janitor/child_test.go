package janitor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// childEnv makes the test binary a janitor.
const childEnv = "SPOOLFS_JANITOR_TEST"

// child is a janitor in a process of its own, with a store of its own.
type child struct {
	Dir, Store, ID    string
	Age, ClaimTimeout time.Duration

	// Crash is the step at whose time number At the process kills itself.
	Crash string
	At    int64
}

// runChild is the process. It ends when it is killed.
func runChild(spec string) int {
	var c child
	if err := json.Unmarshal([]byte(spec), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	q, stages, err := queue.Open(c.Store, queue.Options{Logger: log})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	for _, s := range stages {
		if err := s.Commit(); err != nil {
			return 3
		}
	}
	r, err := q.Route("default")
	if err != nil {
		return 3
	}
	var steps atomic.Int64
	j, err := New(Options{
		Open: OpenPath(c.Dir), Name: c.Dir, Route: r, ID: c.ID, Logger: log,
		Format: ingest.NewSarracenia(ingest.SarraceniaOptions{}),
		Age:    c.Age, ClaimTimeout: c.ClaimTimeout, Interval: 20 * time.Millisecond,
		step: func(step string) {
			if step == c.Crash && steps.Add(1) == c.At {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	j.Run(context.Background(), nil)
	return 0
}

// start starts the process. Wait for what is returned to know that it has ended.
func (c child) start(t testing.TB) *exec.Cmd {
	t.Helper()
	spec, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+string(spec))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// arrival is a message in a store.
type arrival struct{ id, body string }

// stored reads what is in a store whose process has ended.
func stored(t testing.TB, dir string) (pending, partial []arrival) {
	t.Helper()
	q, stages, err := queue.Open(dir, queue.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	for _, s := range stages {
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	r, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	for state, to := range map[queue.State]*[]arrival{queue.Pending: &pending, queue.Partial: &partial} {
		for e, err := range r.Entries(state, queue.Place{}) {
			if err != nil {
				t.Fatal(err)
			}
			*to = append(*to, arrival{string(e.ID), string(e.Body)})
		}
	}
	return pending, partial
}

// checkRepeats checks that what is there twice has one id, and returns each once.
func checkRepeats(t testing.TB, all []arrival) (once map[string]string, repeats int) {
	t.Helper()
	once = map[string]string{}
	for _, a := range all {
		id, ok := once[a.body]
		if ok && id != a.id {
			t.Errorf("%q came with the ids %s and %s", a.body, id, a.id)
		}
		if ok {
			repeats++
		}
		once[a.body] = a.id
	}
	return once, repeats
}
