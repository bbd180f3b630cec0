package queue

import (
	"testing"
	"time"
)

// TestRoute_AppendMarked: the mark of a bundle is there when its messages are,
// also after a restart; a bundle that is not known has none; and of very many
// bundles the last are remembered.
func TestRoute_AppendMarked(t *testing.T) {
	dir := t.TempDir()
	open := func() (*Queue, *Route) {
		t.Helper()
		q, _, err := Open(dir, Options{Limits: Limits{UserShare: 1}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := q.Route("r")
		if err != nil {
			t.Fatal(err)
		}
		return q, r
	}
	q, r := open()
	first := Mark{Bundle: NewFileID(), Lines: 2, Sum: [32]byte{1, 2}, At: time.Unix(1000, 5)}
	if err := r.AppendMarked(messages(NewFileID(), 2), first); err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	q, r = open()
	defer q.Close()
	if got, err := q.Mark(first.Bundle); err != nil || got != first {
		t.Errorf("the mark is %+v, %v, want %+v", got, err, first)
	}
	if got, err := q.Mark(NewFileID()); err != nil || got.Lines != 0 {
		t.Errorf("the mark of an unknown bundle is %+v, %v", got, err)
	}
	if report, err := q.Stats(); err != nil || report.Ready != 2 {
		t.Errorf("the stats are %+v, %v", report, err)
	}
	b := q.engine.db.NewBatch()
	for i := range maxMarks {
		m := Mark{Bundle: NewFileID(), Lines: 1, At: time.Unix(2000+int64(i), 0)}
		if err := b.Set(markKey(m.Bundle), encodeMark(m), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit(nil); err != nil {
		t.Fatal(err)
	}
	if err := r.AppendMarked(messages(NewFileID(), 1), Mark{Bundle: NewFileID(), Lines: 1, At: time.Unix(9000, 0)}); err != nil {
		t.Fatal(err)
	}
	if got, err := q.Mark(first.Bundle); err != nil || got.Lines != 0 {
		t.Errorf("the oldest bundle is remembered: %+v, %v", got, err)
	}
}
