package queue

import "testing"

// TestRoute_AppendIsNotPassedOver: Lease waits for an Append that is on its way
// to the disk, as slow as that may be. Otherwise the head in the counters of the
// next batch would be behind it, and it would be stranded after a crash (Q5).
func TestRoute_AppendIsNotPassedOver(t *testing.T) {
	q, r := openQueue(t, Options{CommitGrace: -1})
	ms := messages(NewFileID(), 2)
	e, w, err := r.submitAppend(q.engine.db.NewBatch(), encodeAll(ms), sizeByUser(ms, encodeAll(ms)))
	if err != nil {
		t.Fatal(err)
	}
	// It is on disk now, but Append does not know that yet.
	if err := q.await(w, nil); err != nil {
		t.Fatal(err)
	}
	commit(t, putStage(t, r, 1))
	if leases, _, err := r.tryLease(10); err != nil || len(leases) > 0 {
		t.Errorf("leased %d messages behind one that is not on disk, %v", len(leases), err)
	}
	if r.headLocked() > e.lo {
		t.Errorf("the head %d is behind the append at %d", r.headLocked(), e.lo)
	}
	r.dropExtentLocked(e, true)
	if got := leaseAll(t, r, 3); got[0].ID != ms[0].ID || got[1].ID != ms[1].ID {
		t.Errorf("leased\n%s, want the append first", ids(got))
	}
}
