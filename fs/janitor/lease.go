package janitor

import "time"

// foreign watches the claims of others. A lease is judged by our own clock: how
// long its mtime stays the same.
type foreign struct {
	timeout time.Duration
	seen    map[string]lease
}

type lease struct {
	mtime int64
	since time.Duration
	pass  int
}

// isDead reports whether a claim has not been renewed for too long.
func (f *foreign) isDead(name string, st stat, now time.Duration, pass int) bool {
	l, ok := f.seen[name]
	if !ok || l.mtime != st.mtime {
		l = lease{mtime: st.mtime, since: now}
	}
	l.pass = pass
	f.seen[name] = l
	return now-l.since >= f.timeout
}

// forget forgets those that have gone.
func (f *foreign) forget(pass int) {
	for name, l := range f.seen {
		if l.pass < pass {
			delete(f.seen, name)
		}
	}
}
