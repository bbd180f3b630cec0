package publisher

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"spoolfs/queue"
)

// next makes routes of the queue.
func (r *rig) next(names ...string) []*queue.Route {
	r.t.Helper()
	var all []*queue.Route
	for _, name := range names {
		route, err := r.queue.Route(name)
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, route)
	}
	return all
}

// follow has routes follow that of the rig from now on.
func (r *rig) follow(set func(*Options)) {
	r.t.Helper()
	opts := r.p.opts
	set(&opts)
	if err := r.p.Reconfigure(opts); err != nil {
		r.t.Fatal(err)
	}
}

// idsIn are the messages that wait in a route.
func idsIn(t *testing.T, r *queue.Route) (ids []queue.ID) {
	t.Helper()
	for m, err := range r.Pending() {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.ID)
	}
	return ids
}

// untilFollowed waits until so many messages are ready in other routes, which they are
// a moment after their parents have left.
func (r *rig) untilFollowed(n uint64) {
	r.t.Helper()
	r.untilEmpty()
	r.until("what follows", func(_ queue.Stats, p Stats) bool { return p.FollowedTotal == n })
}

// TestPublisher_Then proves P13: what is confirmed goes on in each route that
// follows, in its order, and with an ID that tells whose it is.
func TestPublisher_Then(t *testing.T) {
	b := &broker{}
	r := newRig(t, b, Options{})
	to := r.next("mirror", "announce")
	r.follow(func(o *Options) { o.Then = []Follower{{Route: to[0]}, {Route: to[1]}} })
	ids := r.append(300)
	r.untilFollowed(600)
	if got := b.ids(); got != fmt.Sprint(ids) {
		t.Errorf("published %s", got)
	}
	for _, route := range to {
		want := make([]queue.ID, len(ids))
		for i, id := range ids {
			want[i] = id + "/" + queue.ID(route.Name())
		}
		if got := idsIn(t, route); !slices.Equal(got, want) {
			t.Errorf("%s got %d messages, %q …", route.Name(), len(got), got[:min(3, len(got))])
		}
	}
	if s := r.p.Stats(); s.FollowedTotal != 600 || s.ConfirmedTotal != 300 {
		t.Errorf("stats are %+v", s)
	}
}

// TestPublisher_ThenExpired: the age of a message is judged again when it enters a
// route that follows, by the limits of that; it counts from when it was stored first.
func TestPublisher_ThenExpired(t *testing.T) {
	r := newRig(t, &broker{}, Options{})
	to := r.next("dead", "drop", "young")
	r.follow(func(o *Options) {
		o.Then = []Follower{{Route: to[0], TTL: time.Hour}, {Route: to[1], RetryTTL: time.Hour, DropExpired: true}, {Route: to[2], TTL: 3 * time.Hour}}
	})
	m := queue.Message{ID: queue.NewFileID().MessageID(1), Line: 1, Ingested: time.Now().Add(-2 * time.Hour)}
	if err := r.route.Append([]queue.Message{m}); err != nil {
		t.Fatal(err)
	}
	r.untilFollowed(2)
	for m, err := range to[0].Dead() {
		if err != nil || !strings.HasPrefix(m.Reason, "expired: ") {
			t.Errorf("dead letter %+v, %v", m, err)
		}
	}
	for i, want := range []queue.Stats{{Dead: 1}, {}, {Ready: 1}} {
		s, err := to[i].Stats()
		if err != nil || s.Ready != want.Ready || s.Dead != want.Dead {
			t.Errorf("%s has %+v, %v, want %+v", to[i].Name(), s, err, want)
		}
	}
	if s := r.p.Stats(); s.ExpiredTotal != 2 || s.FollowedTotal != 2 || s.ConfirmedTotal != 1 {
		t.Errorf("stats are %+v", s)
	}
}

// TestPublisher_Else: what has failed for good goes on in the route for that, with
// the reason, and leaves no dead letter; and only that.
func TestPublisher_Else(t *testing.T) {
	b := &broker{}
	b.on = func(s *scripted, p Publication) error {
		if strings.HasSuffix(string(p.Message.ID), "-2") {
			return &InvalidError{Reason: "bad: " + strings.Repeat("x", 300)}
		}
		s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
		return nil
	}
	r := newRig(t, b, Options{})
	to := r.next("alerts")
	r.follow(func(o *Options) { o.Else = &Follower{Route: to[0]} })
	ids := r.append(3)
	r.untilFollowed(1)
	for m, err := range to[0].Pending() {
		if err != nil || m.ID != ids[1]+"/alerts" || m.Attempts != 0 || len(m.Headers) != 2 ||
			m.Headers[0] != (queue.Header{Name: "x-spool-failed-route", Value: "default"}) ||
			!strings.HasPrefix(m.Headers[1].Value, "bad: xxx") || len(m.Headers[1].Value) > maxShortString {
			t.Errorf("follows: %+v, %v", m, err)
		}
	}
	if s, err := to[0].Stats(); err != nil || s.Ready != 1 {
		t.Errorf("the alerts are %+v, %v", s, err)
	}
	if s, err := r.route.Stats(); err != nil || s.Dead != 0 {
		t.Errorf("left in the route: %+v, %v", s, err)
	}
}

// TestPublisher_ElseTwice: a message that fails once more on its way, or that has brought
// such headers itself, has them once, as a broker wants it, and they are ours.
func TestPublisher_ElseTwice(t *testing.T) {
	b := &broker{}
	b.on = func(_ *scripted, p Publication) error { return &InvalidError{Reason: "bad"} }
	r := newRig(t, b, Options{})
	to := r.next("second")
	r.follow(func(o *Options) { o.Else = &Follower{Route: to[0]} })
	forged := queue.Message{ID: queue.NewFileID().MessageID(1), Line: 1, Ingested: time.Now(), Headers: []queue.Header{
		{Name: "x-spool-failed-route", Value: "nowhere"}, {Name: "X-Spool-Failed-Reason", Value: "none"}, {Name: "site", Value: "alpha"},
	}}
	if err := r.route.Append([]queue.Message{forged}); err != nil {
		t.Fatal(err)
	}
	r.untilFollowed(1)
	want := []queue.Header{
		{Name: "site", Value: "alpha"}, {Name: "x-spool-failed-route", Value: "default"}, {Name: "x-spool-failed-reason", Value: "bad"},
	}
	for m, err := range to[0].Pending() {
		if err != nil || !slices.Equal(m.Headers, want) {
			t.Errorf("follows with %+v, %v", m, err)
		}
	}
}

// TestPublisher_FollowNamed: an exchange that a record names is for its own route. What
// follows goes to that of the next one, also when nobody allows what it names.
func TestPublisher_FollowNamed(t *testing.T) {
	r := newRig(t, &broker{}, Options{Allowed: []string{"xs_good"}, MaxAttempts: 1, LazyWait: time.Millisecond})
	to := r.next("announce", "alerts")
	r.follow(func(o *Options) { o.Then, o.Else = []Follower{{Route: to[0]}}, &Follower{Route: to[1]} })
	f := queue.NewFileID()
	ms := []queue.Message{
		{ID: f.MessageID(1), Line: 1, Exchange: "xs_good", Key: "k", HasKey: true, Ingested: time.Now()},
		{ID: f.MessageID(2), Line: 2, Exchange: "xs_other", Key: "k", HasKey: true, Ingested: time.Now()},
	}
	if err := r.route.Append(ms); err != nil {
		t.Fatal(err)
	}
	r.untilFollowed(2)
	for i, route := range to {
		for m, err := range route.Pending() {
			if err != nil || m.ID != ms[i].ID+queue.ID("/"+route.Name()) || m.Exchange != "" || m.Key != "k" {
				t.Errorf("%s got %+v, %v", route.Name(), m, err)
			}
		}
	}
}

// TestOptions_Followers: a route does not follow itself, and each has a queue.
func TestOptions_Followers(t *testing.T) {
	r := newRig(t, &broker{}, Options{})
	for what, set := range map[string]func(*Options){
		"itself":  func(o *Options) { o.Then = []Follower{{Route: r.route}} },
		"no then": func(o *Options) { o.Then = []Follower{{}} },
		"no else": func(o *Options) { o.Else = &Follower{} },
	} {
		opts := r.p.opts
		set(&opts)
		if err := r.p.Reconfigure(opts); err == nil || !strings.Contains(err.Error(), "another route") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
