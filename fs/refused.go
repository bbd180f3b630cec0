package fs

import (
	"errors"
	"syscall"

	"spoolfs/queue"
)

// refusals are the reasons for which a writer gets an error that is not his own
// mistake of a name or a mode, in the order in which they are looked for. Names
// are never changed.
var refusals = [...]struct {
	reason string
	errs   []error
}{
	{"bug", []error{errPanicked}},
	{"store-silent", []error{errStuck}},
	{"draining", []error{errDraining}},
	{"file-size", []error{errFileLimit}},
	{"no-message", []error{errNoMessage}},
	{"open-files", []error{errOpenLimit}},
	{"buffers", []error{errBufferLimit}},
	{"user-share", []error{queue.ErrUserShare, errUserLimit}},
	{"queue-full", []error{queue.ErrFull}},
	{"disk-full", []error{queue.ErrDiskFull, syscall.ENOSPC}},
	{"store-failed", []error{queue.ErrFault, queue.ErrClosed}},
}

// countRefusal counts an error by its reason. What has none is a writer's own
// mistake, and is not counted.
func (fs *FS) countRefusal(err error) {
	for i := range refusals {
		for _, e := range refusals[i].errs {
			if errors.Is(err, e) {
				fs.refused[i].Add(1)
				return
			}
		}
	}
}

// Refused returns how many requests were answered with an error that was no mistake
// of the writer, by reason. All reasons are there.
func (fs *FS) Refused() map[string]uint64 {
	all := make(map[string]uint64, len(refusals))
	for i := range refusals {
		all[refusals[i].reason] = fs.refused[i].Load()
	}
	return all
}
