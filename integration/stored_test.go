package integration

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"spoolfs/queue"
)

// stored is what a store holds while its daemon is away, as texts without their
// last newline.
type stored struct {
	pending, dead, partial []string
	ids, labels            []string // and the names of the files, of what is pending
	uids                   []uint32
}

// stored reads the store of a spool that does not run, and commits what a next
// start would commit.
func (s *spool) stored() stored {
	s.t.Helper()
	q, stages, err := queue.Open(s.store, queue.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	defer q.Close()
	for _, stage := range stages {
		if stage.Info().Held {
			continue
		}
		if err := stage.Commit(); err != nil {
			s.t.Fatal(err)
		}
	}
	r, err := q.Route("default")
	if err != nil {
		s.t.Fatal(err)
	}
	var found stored
	for state, texts := range map[queue.State]*[]string{
		queue.Pending: &found.pending, queue.Dead: &found.dead, queue.Partial: &found.partial,
	} {
		for e, err := range r.Entries(state, queue.Place{}) {
			if err != nil {
				s.t.Fatal(err)
			}
			*texts = append(*texts, strings.TrimSuffix(string(e.Body), "\n"))
			if state == queue.Pending {
				found.ids = append(found.ids, string(e.ID))
				found.labels = append(found.labels, e.File)
				found.uids = append(found.uids, e.UID)
			}
		}
	}
	return found
}

// numbered is the record of a writer's file or line.
func numbered(writer string, n int) string { return record(fmt.Sprintf("%s/%d", writer, n)) }

// checkOnceEach checks that the records of each writer, from 0 to count-1, are
// there once and in order, and nothing else.
func checkOnceEach(t testing.TB, got, writers []string, count int) {
	t.Helper()
	if len(got) != len(writers)*count {
		t.Errorf("got %d records, want %d", len(got), len(writers)*count)
	}
	place := map[string]int{}
	for i, text := range got {
		if _, ok := place[text]; ok {
			t.Errorf("twice: %s", text)
		}
		place[text] = i
	}
	for _, w := range writers {
		last := -1
		for n := range count {
			at, ok := place[numbered(w, n)]
			switch {
			case !ok:
				t.Errorf("record %d of %s is lost", n, w)
			case at < last:
				t.Errorf("record %d of %s has changed places with one that was closed before", n, w)
			}
			last = max(last, at)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}
