package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// monitor looks at the daemon once a second, so that there is somebody who knows
// what went on before. It judges health, and writes the log's summaries.
type monitor struct {
	measure func() status
	summary *summaries
	tell    func(status) // gets each look; nil if nobody wants it
	mount   *probe       // nil while nobody asks for it
	store   *probe

	limit time.Duration // of the judges

	mu     sync.Mutex        // guards what follows
	judges map[string]*judge // by route
	phase  phase
	began  time.Time // of the look that has not ended yet; zero when there is none
	last   status
}

// lookEvery is how often a monitor looks.
const lookEvery = time.Second

// probeLimit is how long the mount and the store may take to answer. The disk of
// a busy node may well take seconds for a sync.
const probeLimit = 20 * time.Second

// newMonitor makes a monitor of what measure returns.
func newMonitor(measure func() status, stalledAfter time.Duration, summary *summaries) *monitor {
	return &monitor{measure: measure, summary: summary, limit: stalledAfter, judges: map[string]*judge{}}
}

// run looks until ctx ends. It does not look at the end: the store may be closed.
func (m *monitor) run(ctx context.Context) {
	m.look(ctx)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			m.mu.Lock()
			s := m.last
			m.mu.Unlock()
			m.summary.end(s)
			return
		case <-ticker.C:
			m.look(ctx)
		}
	}
}

// look takes one look.
func (m *monitor) look(ctx context.Context) {
	now := time.Now()
	m.mu.Lock()
	m.began = now
	m.mu.Unlock()
	s := m.measure() // waits for the disk, at worst
	m.mu.Lock()
	m.began = time.Time{}
	m.observeLocked(now, s)
	m.mu.Unlock()
	s = m.judged(s)
	m.mu.Lock()
	m.last = s
	m.mu.Unlock()
	m.mount.step(ctx, operationsOf(s))
	if s.Queue.Refusal == "" { // else it has said that it cannot write
		m.store.step(ctx, s.details.syncs.Count())
	}
	m.summary.observe(now, s)
	if m.tell != nil {
		m.tell(s)
	}
}

// observeLocked has each route judged.
func (m *monitor) observeLocked(now time.Time, s status) {
	for name := range s.Routes {
		if !s.isActive(name) {
			continue
		}
		if m.judges[name] == nil {
			m.judges[name] = &judge{limit: m.limit}
		}
		m.judges[name].observe(now, s.of(name))
	}
	maps.DeleteFunc(m.judges, func(name string, _ *judge) bool { return !s.isActive(name) })
}

// operationsOf counts what the mount has answered.
func operationsOf(s status) uint64 {
	var n uint64
	for _, d := range s.details.operations {
		n += d.Count()
	}
	return n
}

// judged adds to a status what a monitor knows.
func (m *monitor) judged(s status) status {
	now := time.Now()
	m.mu.Lock()
	seen := m.seenLocked(now)
	s.Routes = maps.Clone(s.Routes) // others have it, too
	for name, j := range m.judges {
		if r, there := s.Routes[name]; there {
			r.Publisher.StalledSeconds = seconds(j.stalled)
			s.Routes[name] = r
		}
	}
	s.Publisher.StalledSeconds = s.Routes[defaultRoute].Publisher.StalledSeconds
	m.mu.Unlock()
	s.Health = healthOf(s, seen, now)
	return s
}

func (m *monitor) seenLocked(now time.Time) observed {
	seen := observed{
		phase:       m.phase,
		mountSilent: m.mount.silent(now), storeSilent: m.store.silent(now),
	}
	for name, j := range m.judges {
		if j.isStalled() {
			seen.stalled = append(seen.stalled, name)
		}
	}
	if took := now.Sub(m.began); !m.began.IsZero() && took > probeLimit {
		seen.storeSilent = max(seen.storeSilent, took)
	}
	return seen
}

// health is that of the last look. It never waits, and a look that does not end
// is part of it.
func (m *monitor) health() health {
	m.mu.Lock()
	s := m.last
	m.mu.Unlock()
	return m.judged(s).Health
}

// progress is the judgement for a watchdog that ends the daemon: nil as long as
// the mount and the store answer. A full disk, a store that has failed, and the
// broker with all its troubles are no reason to end it.
func (m *monitor) progress() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.seenLocked(time.Now())
	var errs []error
	if seen.mountSilent > 0 {
		errs = append(errs, fmt.Errorf("the mount has not answered for %s", seen.mountSilent.Round(time.Second)))
	}
	if seen.storeSilent > 0 {
		errs = append(errs, fmt.Errorf("the store has not answered for %s", seen.storeSilent.Round(time.Second)))
	}
	return errors.Join(errs...)
}

// enter notes the phase of the daemon's life.
func (m *monitor) enter(p phase) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.phase = p
}
