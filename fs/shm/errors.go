package shm

import "errors"

var (
	// ErrLayout says that a memory is of another layout, that of another version
	// of the program: the mount has to be made anew.
	ErrLayout = errors.New("shared memory of another version")

	// ErrDamaged says that what is in the memory makes no sense.
	ErrDamaged = errors.New("shared memory is damaged")

	// ErrOtherStore says that what is in the memory belongs to another store.
	ErrOtherStore = errors.New("what is open belongs to another store")

	// ErrFull says that the memory has no room left.
	ErrFull = errors.New("shared memory is full")
)
