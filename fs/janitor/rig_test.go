package janitor

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(childEnv); spec != "" {
		os.Exit(runChild(spec))
	}
	goleak.VerifyTestMain(m)
}

// rig is a janitor on a real directory and a real queue.
type rig struct {
	t     testing.TB
	dir   string
	queue *queue.Queue
	route *queue.Route
	j     *Janitor
}

func newRig(t testing.TB, opts Options) *rig {
	t.Helper()
	return newRigOf(t, opts, queue.Limits{UserShare: 1})
}

func newRigOf(t testing.TB, opts Options, limits queue.Limits) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir()}
	q, _, err := queue.Open(t.TempDir(), queue.Options{Logger: slog.New(slog.DiscardHandler), Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	r.queue = q
	t.Cleanup(func() { q.Close() })
	if r.route, err = q.Route("default"); err != nil {
		t.Fatal(err)
	}
	r.j = r.janitor(opts)
	return r
}

// janitor makes one for the directory.
func (r *rig) janitor(opts Options) *Janitor {
	r.t.Helper()
	opts.Open, opts.Name, opts.Route = OpenPath(r.dir), "dir", r.route
	opts.Format = ingest.NewSarracenia(ingest.SarraceniaOptions{})
	opts.Logger = slog.New(slog.DiscardHandler)
	if opts.ID == "" {
		opts.ID = NewID()
	}
	j, err := New(opts)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { j.Close() })
	return j
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(r.path(name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// old makes a file look like one of long ago.
func (r *rig) old(name string, age time.Duration) {
	r.t.Helper()
	at := time.Now().Add(-age)
	if err := os.Chtimes(r.path(name), at, at); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) pass() {
	r.t.Helper()
	if _, err := r.j.Pass(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

// names lists the directory, without the claims that are kept.
func (r *rig) names() []string {
	r.t.Helper()
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if claimOwner(e.Name()) == "" || !isEmptyDir(r.path(e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names
}

func isEmptyDir(path string) bool {
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}

// messages are what the queue holds in a state.
func (r *rig) messages(state queue.State) []queue.Message {
	r.t.Helper()
	var all []queue.Message
	for e, err := range r.route.Entries(state, queue.Place{}) {
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, *e.Message)
	}
	return all
}

// paths are the relPaths of the messages, in their order.
func (r *rig) paths() []string {
	r.t.Helper()
	var all []string
	for _, m := range r.messages(queue.Pending) {
		all = append(all, pathOf(string(m.Body)))
	}
	return all
}

func pathOf(body string) string {
	_, rest, _ := strings.Cut(body, `"relPath": "`)
	path, _, _ := strings.Cut(rest, `"`)
	return path
}

func record(path string) string {
	return fmt.Sprintf(`{"pubTime": "20261130T070000", "baseUrl": "http://h", "relPath": "%s"}`+"\n", path)
}

func check(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}
