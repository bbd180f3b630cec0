package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"spoolfs/queue"
)

// handOverBatch is how many messages are moved at a time.
const handOverBatch = 256

// handOver moves all messages of a store to a spool that is mounted. A message
// leaves the store when it is on the disk of the other; if that ends in between,
// a batch comes twice, with the same ids.
func (c *drainCommand) handOver(env *environment, s *offlineStore) (err error) {
	m, err := findMount(c.To)
	if err != nil {
		return err
	}
	stats, err := s.Stats()
	if err != nil {
		return withCode(exitIO, err)
	}
	to, err := os.OpenFile(filepath.Join(m.Mountpoint, ".status", "import"), os.O_WRONLY, 0)
	if err != nil {
		return importError(m.Mountpoint, err)
	}
	ctx, cancel := c.limited(env.ctx)
	defer cancel()
	h := &handOver{store: s, to: to, ctx: ctx, total: stats.Dead + stats.Partial + unsent(stats)}
	h.bar = newProgress(env.stderr, "moving", h.total)
	// Drawn at random: what is left after a crash is another bundle.
	_, err = to.Write(newBundleHead(queue.NewFileID(), c.Store))
	if err == nil {
		err = h.move()
	}
	err = errors.Join(err, to.Close())
	h.bar.end(h.total - h.moved)
	fmt.Fprintf(env.stderr, "%d messages moved to %s, %d left in %s\n", h.moved, m.Mountpoint, h.total-h.moved, c.Store)
	if ctx.Err() != nil {
		return withCode(exitTemporary, fmt.Errorf("%d messages are still in %s, safe; run it again", h.total-h.moved, c.Store))
	}
	return importError(m.Mountpoint, err)
}

// handOver is a store on its way into another.
type handOver struct {
	store        *offlineStore
	to           *os.File
	ctx          context.Context
	bar          *progress
	total, moved uint64
}

func (h *handOver) move() error {
	for _, r := range h.store.Routes() {
		// Who has refused them does not matter any more.
		if err := r.Hasten(); err != nil {
			return err
		}
		if err := h.moveReady(r); err != nil {
			return err
		}
		for _, state := range bundleStates[2:] {
			if err := h.moveAside(r, state.name, state.state); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveReady moves what is ready, in its order.
func (h *handOver) moveReady(r *queue.Route) error {
	for {
		s, err := r.Stats()
		if err != nil || s.Ready == 0 {
			return err
		}
		ctx, cancel := context.WithTimeout(h.ctx, 10*time.Second)
		leases, err := r.Lease(ctx, handOverBatch)
		cancel()
		if err != nil {
			return err
		}
		var lines []byte
		for _, l := range leases {
			lines = append(lines, bundleLine(r.Name(), stateReady, l.Message)...)
		}
		if err := h.write(lines, len(leases)); err != nil {
			return err
		}
		if err := r.Ack(leases...); err != nil {
			return err
		}
	}
}

// moveAside moves dead letters or partial files.
func (h *handOver) moveAside(r *queue.Route, name string, state queue.State) error {
	var places []queue.Place
	var lines []byte
	flush := func() error {
		if err := h.write(lines, len(places)); err != nil {
			return err
		}
		for _, p := range places {
			if err := r.Purge(state, p); err != nil && !errors.Is(err, queue.ErrNotFound) {
				return err
			}
		}
		places, lines = nil, nil
		return nil
	}
	for e, err := range r.Entries(state, queue.Place{}) {
		if err != nil {
			return err
		}
		if e.ID == "" {
			continue // a record that cannot be read: it stays
		}
		lines = append(lines, bundleLine(r.Name(), name, e.Message)...)
		places = append(places, e.Place)
		if len(places) == handOverBatch || len(lines) > 16<<20 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// write writes lines, which are on the other's disk when it returns.
func (h *handOver) write(lines []byte, messages int) error {
	if err := h.ctx.Err(); err != nil {
		return err
	}
	if len(lines) > 0 {
		if _, err := h.to.Write(lines); err != nil {
			return err
		}
	}
	h.moved += uint64(messages)
	h.bar.left(h.total-min(h.moved, h.total), "moving")
	return nil
}
