package queue

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// errDamaged says that what the disk gave is not what was written to it.
var errDamaged = errors.New("store is damaged")

// DamageReport says what a store could not read since it was made.
type DamageReport struct {
	// Damaged counts what was set aside: rows, blocks of tables, gaps in logs,
	// files. One block holds dozens of messages.
	Damaged uint64 `json:"damaged"`

	// Missing is how many messages the counters of the store knew that were
	// not found any more.
	Missing uint64 `json:"missing"`

	// Dir is the newest directory that was set aside, with a REPORT in it, and
	// At when that was. Empty when single rows were set aside at most.
	Dir string    `json:"dir,omitempty"`
	At  time.Time `json:"at,omitzero"`
}

// The tags of the row of kind 'x' that has no more to its key, in the envelope
// of fields.go.
const (
	tagDamaged = iota + 1
	tagMissing
	tagDamageDir
	tagDamageAt // nanoseconds since 1970
)

func (d *DamageReport) add(o DamageReport) {
	d.Damaged += o.Damaged
	d.Missing += o.Missing
	if o.Dir != "" {
		d.Dir, d.At = o.Dir, o.At
	}
}

func (d *DamageReport) encode() []byte {
	w := newFieldWriter(64)
	w.uint(tagDamaged, d.Damaged)
	w.uint(tagMissing, d.Missing)
	w.text(tagDamageDir, d.Dir)
	w.uint(tagDamageAt, unixNano(d.At))
	return w.finish()
}

func decodeDamage(value []byte) (DamageReport, error) {
	var d DamageReport
	var at uint64
	numbers := map[uint64]*uint64{tagDamaged: &d.Damaged, tagMissing: &d.Missing, tagDamageAt: &at}
	err := eachField(value, func(tag uint64, content []byte) (err error) {
		if tag == tagDamageDir {
			d.Dir = string(content)
		} else if n := numbers[tag]; n != nil {
			*n, err = fieldUint(content)
		}
		return err
	})
	if at != 0 {
		d.At = time.Unix(0, int64(at))
	}
	return d, err
}

// readDamage reads what a database remembers of former damage. A report that is
// itself damaged begins again.
func readDamage(db *pebble.DB) (DamageReport, error) {
	value, closer, err := db.Get(damageKey(nil))
	if errors.Is(err, pebble.ErrNotFound) {
		return DamageReport{}, nil
	}
	if err != nil {
		return DamageReport{}, err
	}
	defer closer.Close()
	d, err := decodeDamage(value)
	if err != nil {
		return DamageReport{Damaged: 1}, nil
	}
	return d, nil
}

// damageKey is where a row is kept that cannot be understood.
func damageKey(key []byte) []byte { return append([]byte{kindDamage}, key...) }

// Damage says what the store could not read since it was made.
func (q *Queue) Damage() DamageReport {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.damage
}

// isDamage tells damage, which stays, from an error of the disk or of the
// system, which may pass. In doubt, an error that names no cause of the system
// is damage: then Pebble did not like what it read.
func isDamage(err error) bool {
	switch {
	case err == nil, errors.Is(err, errorfs.ErrInjected),
		errors.Is(err, ErrNewerStore), errors.Is(err, ErrLocked), errors.Is(err, ErrClosed):
		return false
	case errors.Is(err, errDamaged), errors.Is(err, ErrCorrupt), pebble.IsCorruptionError(err),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, record.ErrUnexpectedEOF):
		return true
	}
	return !ofSystem(err)
}

// isCorruption reports whether a database that was open has met damage for sure.
func isCorruption(err error) bool {
	return errors.Is(err, errDamaged) || pebble.IsCorruptionError(err)
}

// ofSystem reports whether a system call failed, other than by not finding a
// file.
func ofSystem(err error) bool {
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	var errno syscall.Errno
	var path *fs.PathError
	var link *os.LinkError
	var call *os.SyscallError
	return errors.As(err, &errno) || errors.As(err, &path) || errors.As(err, &link) || errors.As(err, &call) ||
		errors.Is(err, ErrFault)
}

// guarded is answered for reads: any other panic means that Pebble choked on what
// it read.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	return answered(f)
}

// condemn ends the engine when a read of the database has met damage, and
// returns what to tell the caller.
func (e *engine) condemn(err error) error {
	if err == nil || !isDamage(err) {
		return err
	}
	err = fmt.Errorf("%w: %w", errDamaged, err)
	e.fail(err)
	return fmt.Errorf("%w: %w", ErrFault, err)
}
