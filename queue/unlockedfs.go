package queue

import (
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// unlockedFS leaves the locking to who holds the lock of the store.
type unlockedFS struct{ vfs.FS }

var _ vfs.FS = unlockedFS{}

func (unlockedFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

func (f unlockedFS) Unwrap() vfs.FS { return f.FS }
