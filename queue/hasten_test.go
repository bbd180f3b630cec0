package queue

import (
	"slices"
	"testing"
	"time"
)

// TestRoute_Hasten: what is delayed for hours goes out at once, in the order in
// which it was stored and before what is younger.
func TestRoute_Hasten(t *testing.T) {
	_, r := openQueue(t, Options{})
	const n = pageSize + 10
	ms := messages(NewFileID(), n)
	if err := r.Append(ms); err != nil {
		t.Fatal(err)
	}
	for i, l := range leaseAll(t, r, n) {
		if err := r.Nack(l, time.Now().Add(time.Hour-time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	young := messages(NewFileID(), 1)
	if err := r.Append(young); err != nil {
		t.Fatal(err)
	}
	if err := r.Hasten(); err != nil {
		t.Fatal(err)
	}
	if s, err := r.Stats(); err != nil || s.Delayed != 0 || s.Ready != n+1 {
		t.Errorf("%+v, %v", s, err)
	}
	var got, want []ID
	for _, m := range append(ms, young...) {
		want = append(want, m.ID)
	}
	for _, l := range leaseAll(t, r, n+1) {
		if l.Attempts > 1 {
			t.Errorf("%s has %d attempts", l.ID, l.Attempts)
		}
		got = append(got, l.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("leased %v, want %v", got, want)
	}
	checkScan(t, r)
}
