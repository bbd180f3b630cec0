package fs

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// usage counts what users hold in this process, and bounds it: what one user
// holds is not there for the others.
type usage struct {
	mu           sync.Mutex
	files, bytes int64   // what all may hold
	share        float64 // the part of it that one user may, root apart

	all   holding
	users map[uint32]holding
}

// holding is what somebody holds: open files, held files and directories, and
// bytes in memory.
type holding struct{ files, bytes int64 }

func (h holding) plus(o holding) holding { return holding{h.files + o.files, h.bytes + o.bytes} }

// take counts more for a user, or refuses it.
func (u *usage) take(uid uint32, more holding) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	all, own := u.all.plus(more), u.users[uid].plus(more)
	switch {
	case more.files > 0 && all.files > u.files:
		return fmt.Errorf("%w: %d", errOpenLimit, u.all.files)
	case more.bytes > 0 && all.bytes > u.bytes:
		return fmt.Errorf("%w: %d", errBufferLimit, u.all.bytes)
	case uid == 0:
	case more.files > 0 && over(own.files, u.files, u.share), more.bytes > 0 && over(own.bytes, u.bytes, u.share):
		return fmt.Errorf("%w: user %d has %d files and %d bytes", errUserLimit, uid, own.files-more.files, own.bytes-more.bytes)
	}
	u.all = all
	u.users[uid] = own
	return nil
}

func over(n, limit int64, share float64) bool { return float64(n) > float64(limit)*share }

// force counts what is there already, whatever the limits are.
func (u *usage) force(uid uint32, more holding) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all, u.users[uid] = u.all.plus(more), u.users[uid].plus(more)
}

// give is the inverse of take.
func (u *usage) give(uid uint32, less holding) {
	u.mu.Lock()
	defer u.mu.Unlock()
	less = holding{-less.files, -less.bytes}
	u.all = u.all.plus(less)
	if left := u.users[uid].plus(less); left != (holding{}) {
		u.users[uid] = left
	} else {
		delete(u.users, uid)
	}
}

// held returns what all hold.
func (u *usage) held() holding {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all
}

// holders lists the users who hold something.
func (u *usage) holders() []uint32 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Keys(u.users))
}
