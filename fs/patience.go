package fs

import "time"

// No request waits for ever: if the disk of the store does not answer, it is
// answered with EIO after Options.StoreTimeout. What it has begun goes on and ends
// when the disk answers.

// patiently runs what may wait for the disk, for a request or for none (0). As f
// may outlive the request, it must not refer to what belongs to that.
func (fs *FS) patiently(unique uint64, f func() error) error {
	defer fs.waiting(unique)()
	done := make(chan error, 1)
	fs.crew().do(func() {
		err := errPanicked
		defer func() {
			if cause := recover(); cause != nil {
				fs.recovered(cause)
			}
			done <- err
		}()
		err = f()
	})
	timer := time.NewTimer(fs.tuned.Load().StoreTimeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errStuck
	}
}

// patient is patiently for what returns something.
func patient[T any](fs *FS, unique uint64, f func() (T, error)) (T, error) {
	found := new(T)
	err := fs.patiently(unique, func() (err error) {
		*found, err = f()
		return err
	})
	if err != nil {
		return *new(T), err // found may still be written to
	}
	return *found, nil
}

// crew are those who wait for the disk; nil while the mount is not served.
func (fs *FS) crew() *crew {
	if s := fs.server.Load(); s != nil {
		return s.crew
	}
	return nil
}

// waiting says that a request waits for the disk, until the function that it
// returns is called.
func (fs *FS) waiting(unique uint64) func() {
	if s := fs.server.Load(); s != nil && unique != 0 {
		return s.wait(unique)
	}
	return func() {}
}

// lock takes the lock of a file for a request, and reports whether it has it:
// who has it may wait for the disk.
func (fs *FS) lock(unique uint64, f *file) bool {
	if f.mu.tryLock() {
		return true
	}
	defer fs.waiting(unique)()
	return f.mu.lockWithin(fs.tuned.Load().StoreTimeout)
}

// lock is a mutex that one can stop waiting for.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) Lock()   { l <- struct{}{} }
func (l lock) Unlock() { <-l }

func (l lock) tryLock() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

// lockWithin reports whether it has the lock.
func (l lock) lockWithin(d time.Duration) bool {
	if l.tryLock() {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case l <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}
