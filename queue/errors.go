package queue

import (
	"errors"
	"fmt"
	"syscall"
)

// Errors that a caller can act upon.
var (
	// ErrClosed says that the queue has been closed.
	ErrClosed = errors.New("queue is closed")

	// ErrLocked says that another process has the store open. Wait for it, or
	// use another store.
	ErrLocked = errors.New("store is in use by another process")

	// ErrNewerStore says that the store was written by a newer version of
	// this program. It has not been touched; install that version.
	ErrNewerStore = errors.New("store was written by a newer version")

	// ErrFault says that the store has failed (disk full, I/O error). What was
	// put before is safe. The queue opens it again by itself; try again later.
	ErrFault = errors.New("store has failed")

	// ErrFull says that the queue holds as much as it may.
	ErrFull = errors.New("queue is full")

	// ErrUserShare says that the user holds as much as one user may.
	ErrUserShare = fmt.Errorf("user's share of the queue is full: %w", syscall.EDQUOT)

	// ErrDiskFull says that the rest of the disk is kept free.
	ErrDiskFull = fmt.Errorf("disk is full: %w", syscall.ENOSPC)

	// ErrNotLeased says that a lease was settled before.
	ErrNotLeased = errors.New("message is not leased")

	// ErrNotFound says that there is no such message, or no more.
	ErrNotFound = errors.New("message is not there")

	// ErrExists says that there is a route of that name already.
	ErrExists = errors.New("there is a route of that name")

	// ErrLeased says that a message is being published at the moment. Try
	// again later.
	ErrLeased = errors.New("message is being published")

	// ErrCorrupt says that a stored record cannot be decoded.
	ErrCorrupt = errors.New("corrupt record")
)
