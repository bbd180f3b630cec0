package publisher

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"spoolfs/queue"
)

// TestPublisher_Reconfigure: other options, again and again while messages flow,
// lose and repeat nothing, keep the order, and hold for what comes after.
func TestPublisher_Reconfigure(t *testing.T) {
	var mu sync.Mutex
	last := map[queue.ID]string{}
	b := &broker{on: func(s *scripted, p Publication) error {
		mu.Lock()
		last[p.Message.ID] = p.Exchange
		mu.Unlock()
		// Late, so that there is always something in flight.
		go s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
		return nil
	}}
	r := newRig(t, b, Options{})
	opts := r.p.opts
	var want []queue.ID
	for i := range 20 {
		want = append(want, r.append(200)...)
		opts.Exchange = fmt.Sprintf("xs_%d", i)
		opts.Window = 1 + i*7%64
		if i%2 == 1 {
			confirmed := r.p.Stats().ConfirmedTotal
			r.until("in the middle", func(_ queue.Stats, p Stats) bool { return p.ConfirmedTotal > confirmed+50 })
		}
		if err := r.p.Reconfigure(opts); err != nil {
			t.Fatal(err)
		}
	}
	r.untilEmpty()
	end := r.append(1)
	r.untilEmpty()
	if got := b.ids(); got != fmt.Sprint(append(want, end...)) {
		t.Errorf("published %d messages\n%s\nwant %d\n%s", len(b.published), got, len(want)+1, fmt.Sprint(want))
	}
	if s := r.p.Stats(); last[end[0]] != "xs_19" || r.p.opts.Window != 1+19*7%64 || s.RequeuedTotal != 0 {
		t.Errorf("the last went to %s, the stats are %+v", last[end[0]], s)
	}
}

// TestPublisher_ReconfigureEndsWaits: a broker that needs somebody's hand is not
// waited for when the options change, and a pause goes on.
func TestPublisher_ReconfigureEndsWaits(t *testing.T) {
	b := &broker{dial: func(int) error {
		return &Fault{Class: Lazy, Cause: LoginRefused, Err: errors.New("no")}
	}}
	r := newRig(t, b, Options{LazyWait: time.Hour})
	want := r.append(3)
	r.until("waiting", func(_ queue.Stats, p Stats) bool { return p.State == Waiting })
	good := &broker{}
	opts := r.p.opts
	opts.Dial, opts.Rate = good.Dial, 1e6
	r.p.Pause()
	if err := r.p.Reconfigure(opts); err != nil {
		t.Fatal(err)
	}
	r.until("paused", func(_ queue.Stats, p Stats) bool { return p.State == Paused })
	if len(good.published) != 0 {
		t.Error("published while paused")
	}
	r.p.Resume()
	r.untilEmpty()
	if got := good.ids(); got != fmt.Sprint(want) || !r.p.Stats().RateLimited {
		t.Errorf("published %s, want %s; %+v", got, want, r.p.Stats())
	}
}

// TestPublisher_ReconfigureRefused: what New would refuse changes nothing.
func TestPublisher_ReconfigureRefused(t *testing.T) {
	b := &broker{}
	r := newRig(t, b, Options{})
	opts := r.p.opts
	opts.Rate = -1
	other := r.p.opts
	other.Route = &queue.Route{}
	if r.p.Reconfigure(opts) == nil || r.p.Reconfigure(other) == nil {
		t.Error("accepted")
	}
	want := r.append(3)
	r.untilEmpty()
	if got := b.ids(); got != fmt.Sprint(want) {
		t.Errorf("published %s, want %s", got, want)
	}
}

// TestWindow_Reconfigure: bounds change, and a broker that refuses messages goes
// on being spared.
func TestWindow_Reconfigure(t *testing.T) {
	opts := func(n int) *Options { return &Options{Window: n, WindowBytes: 1 << 20, ConfirmTimeout: time.Minute} }
	w := newWindow(opts(64), backoff{min: time.Hour, max: time.Hour, jitter: func(d time.Duration) time.Duration { return d }})
	sizes := func() []int { return []int{w.limit, w.most} }
	w.reconfigure(opts(128), w.pauses)
	if got := sizes(); !slices.Equal(got, []int{128, 128}) {
		t.Errorf("wider: %v", got)
	}
	w.rejected(time.Now(), 1)
	w.reconfigure(opts(256), w.pauses)
	if got := sizes(); !slices.Equal(got, []int{64, 256}) || w.paused() {
		t.Errorf("after a nack: %v, paused %t", got, w.paused())
	}
	w.reconfigure(opts(16), w.pauses)
	if got := sizes(); !slices.Equal(got, []int{16, 16}) {
		t.Errorf("narrower: %v", got)
	}
}

// TestPublisher_ReconfigureBetween: options that come between the look for them
// and the beginning of the work are not left for later.
func TestPublisher_ReconfigureBetween(t *testing.T) {
	r := newRig(t, &broker{}, Options{})
	r.halt()
	r.p.adopt()
	if err := r.p.Reconfigure(r.p.opts); err != nil {
		t.Fatal(err)
	}
	working, _, again := r.p.control.begin(t.Context())
	if working != nil {
		t.Fatal("the work began with the old options")
	}
	<-again
	r.p.adopt()
	working, stop, _ := r.p.control.begin(t.Context())
	if working == nil {
		t.Fatal("no work began")
	}
	stop()
}
