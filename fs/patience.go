package fs

import "time"

// No request waits for ever: if the disk of the store does not answer, it is
// answered with EIO after Options.StoreTimeout. What it has begun goes on and ends
// when the disk answers.

// patiently runs what may wait for the disk. As f may outlive the request, it must
// not refer to what belongs to that.
func (fs *FS) patiently(f func() error) error {
	done := make(chan error, 1)
	go func() {
		err := errPanicked
		defer func() {
			if cause := recover(); cause != nil {
				fs.recovered(cause)
			}
			done <- err
		}()
		err = f()
	}()
	timer := time.NewTimer(fs.opts.StoreTimeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errStuck
	}
}

// patient is patiently for what returns something.
func patient[T any](fs *FS, f func() (T, error)) (T, error) {
	found := new(T)
	err := fs.patiently(func() (err error) {
		*found, err = f()
		return err
	})
	if err != nil {
		return *new(T), err // found may still be written to
	}
	return *found, nil
}

// lock is a mutex that one can stop waiting for.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) Lock()   { l <- struct{}{} }
func (l lock) Unlock() { <-l }

// lockWithin reports whether it has the lock.
func (l lock) lockWithin(d time.Duration) bool {
	select {
	case l <- struct{}{}:
		return true
	default:
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
