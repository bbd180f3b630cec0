package janitor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// unknownAge is how old a file must be where the kernel cannot tell whether
// somebody has it open for writing.
const unknownAge = time.Minute

// A batch is what is stored with one sync.
const (
	batchFiles = 256
	batchBytes = 8 << 20 // of files
	readers    = 4
)

// takeAll takes files, which are in the claim already if claimed is set. While a
// batch is on its way to the disk the next one is read.
func (j *Janitor) takeAll(ctx context.Context, c *claim, l *listing, claimed bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	batches := make(chan []*file)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(batches)
		for rest := l.items; len(rest) > 0 && ctx.Err() == nil; {
			n := batchSize(rest)
			files, err := j.readBatch(c, l, rest[:n], claimed)
			rest = rest[n:]
			if err != nil {
				cancel(err)
			}
			select {
			case batches <- files:
			case <-ctx.Done():
				closeAll(files)
			}
		}
	})
	for files := range batches {
		if err := j.storeBatch(ctx, files); err != nil {
			cancel(err)
		}
		closeAll(files)
	}
	reading.Wait()
	return context.Cause(ctx)
}

// batchSize is how many of the files make a batch.
func batchSize(items []item) int {
	bytes, n := int64(0), 0
	for n < len(items) && n < batchFiles && (n == 0 || bytes+items[n].size <= batchBytes) {
		bytes += items[n].size
		n++
	}
	return n
}

func closeAll(files []*file) {
	for _, f := range files {
		// They were read only, and the lease goes in any case.
		_ = f.close()
	}
}

// readBatch claims and reads files, in order. The error is one that concerns all.
func (j *Janitor) readBatch(c *claim, l *listing, items []item, claimed bool) ([]*file, error) {
	files := make([]*file, len(items))
	errs := make([]error, readers)
	var wait sync.WaitGroup
	for r := range readers {
		wait.Go(func() {
			for i := r; i < len(items) && errs[r] == nil; i += readers {
				files[i], errs[r] = j.readFile(c, l.nameOf(items[i]), items[i], claimed)
			}
		})
	}
	wait.Wait()
	read := files[:0]
	for _, f := range files {
		if f != nil {
			read = append(read, f)
		}
	}
	return read, errors.Join(errs...)
}

// readFile claims and reads a file; nil if it is not to be taken now.
func (j *Janitor) readFile(c *claim, name string, it item, claimed bool) (*file, error) {
	dir := c.dir.fd
	if claimed {
		dir = c.fd
	}
	f, err := open(dir, name)
	if err != nil {
		return nil, j.unread(c.dir.label+name, err)
	}
	f.claim = c
	if err := j.claimFile(f, it, claimed); err != nil {
		return nil, j.unread(f.label(), errors.Join(err, f.close()))
	}
	if err := j.load(f); err != nil {
		return nil, j.unread(f.label(), errors.Join(err, f.close()))
	}
	return f, nil
}

// claimFile checks that a file is still what was listed, and moves it into the
// claim.
func (j *Janitor) claimFile(f *file, it item, claimed bool) error {
	if f.stat.ino != it.ino || f.stat.size != it.size || f.stat.mtime != it.mtime {
		return errChanged
	}
	if !f.leased && !j.isOld(f.stat) {
		return errBusy
	}
	if claimed {
		return nil
	}
	j.opts.step("claim")
	ok, err := f.claim.take(f.name)
	if err != nil {
		return err
	}
	if !ok {
		return unix.ENOENT
	}
	j.opts.step("claimed")
	if err := f.verify(); !errors.Is(err, errChanged) {
		return err
	}
	// Another one has come in its place meanwhile, which nobody has judged. Where
	// its name is in use again it stays, for the next pass.
	_ = f.claim.putBack(f.name)
	return errChanged
}

// general are the errors that concern all files of a directory.
var general = []error{unix.EROFS, unix.ENOSPC, unix.EDQUOT, unix.EMFILE, unix.ENFILE, unix.ENOTDIR}

func isGeneral(err error) bool {
	return slices.ContainsFunc(general, func(e error) bool { return errors.Is(err, e) })
}

// unread counts a file that is not taken, and returns an error that concerns all
// others too.
func (j *Janitor) unread(label string, err error) error {
	switch {
	case isGeneral(err):
		return err
	case isGone(err):
	case errors.Is(err, errBusy), errors.Is(err, errChanged), errors.Is(err, errLinked), errors.Is(err, errNoFile):
		j.setAside(err, label, nil)
	default:
		j.warn("cannot take a file", label, err)
		j.setAside(errNoFile, label, err)
	}
	return nil
}

// warn logs what concerns one file or directory: the first of a pass, since there
// may be any number of them.
func (j *Janitor) warn(what, label string, err error) {
	j.mu.Lock()
	first := !j.warned
	j.warned = true
	j.mu.Unlock()
	if first {
		j.log.Warn(what+"; others of this pass are not logged", "name", label, "error", err)
	}
}
