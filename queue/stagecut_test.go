package queue

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// TestStage_CutIsNotLeased: what a Put replaces, or a Discard removes, is not
// leased in the moment between the decision and the disk, and is counted once.
func TestStage_CutIsNotLeased(t *testing.T) {
	for name, submit := range map[string]func(s *Stage, b *pebble.Batch, c cutting) (*write, error){
		"discard": func(s *Stage, b *pebble.Batch, c cutting) (*write, error) {
			return s.submitEnd(b, ending{discard: true, cut: c})
		},
		"put": func(s *Stage, b *pebble.Batch, c cutting) (*write, error) {
			return s.put(b, c, encodeAll(messages(s.file, 1)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			q, r := openQueue(t, Options{})
			s := putStage(t, r, 3)
			b := q.engine.db.NewBatch()
			c, err := s.cut(b, 0)
			if err != nil {
				t.Fatal(err)
			}
			w, err := submit(s, b, c)
			if err != nil {
				t.Fatal(err)
			}
			// A reader sees the rows until the batch is applied.
			if leases, _, err := r.tryLease(10); err != nil || len(leases) > 0 {
				t.Errorf("leased %s, %v", ids(leases), err)
			}
			if err := s.gone(q.await(w, nil)); err != nil {
				t.Fatal(err)
			}
			commit(t, s)
			commit(t, putStage(t, r, 1))
			for range map[string]int{"discard": 1, "put": 2}[name] {
				leases, err := r.Lease(context.Background(), 1)
				if err != nil || len(leases) != 1 {
					t.Fatalf("leased %s, %v", ids(leases), err)
				}
				if err := r.Ack(leases...); err != nil {
					t.Fatal(err)
				}
			}
			if st, err := q.Stats(); err != nil || st.Ready+st.Leased+st.Staged != 0 || st.Bytes != 0 {
				t.Errorf("the queue is %+v, %v", st, err)
			}
		})
	}
}
