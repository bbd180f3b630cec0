package fs

import (
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// tendEvery is how often tend does what is due. It is at most this late.
const tendEvery = 250 * time.Millisecond

// tend takes a step from time to time, until done is closed.
func (fs *FS) tend(step func(), done <-chan struct{}) {
	ticker := time.NewTicker(tendEvery)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			fs.guard(step)
		}
	}
}

// tendNames ends grace seconds. It never waits for the disk.
func (fs *FS) tendNames() {
	fs.memory.SetAlive(fs.now().UnixNano())
	fs.mu.Lock()
	fs.expireLocked()
	stale := fs.stale
	fs.stale = nil
	fs.mu.Unlock()
	fs.pruneNodes(stale)
	s := fs.server.Load()
	if s == nil {
		return
	}
	s.answerStuck()
	s.slots.trim()
	if s.resendsAreOver(outcomesLast) {
		fs.forgetOutcomes()
	}
}

// tendFiles commits what lingers, and sets aside what waits for a rename for too
// long.
func (fs *FS) tendFiles() {
	fs.commitLingering()
	fs.abandonHeld()
}

// maxPrune is how many nodes one notification names.
const maxPrune = 1024

// pruneNodes tells the kernel to forget nodes: it keeps the name and inode of
// each, some 900 bytes, until memory is short.
func (fs *FS) pruneNodes(ids []uint64) {
	s := fs.server.Load()
	for len(ids) > 0 && s != nil {
		n := min(len(ids), maxPrune)
		if st := s.prune(ids[:n]); st == fuse.ENOSYS || st == fuse.EINVAL {
			fs.cannotPrune.Store(true) // before Linux 6.18
			return
		}
		ids = ids[n:]
	}
}
