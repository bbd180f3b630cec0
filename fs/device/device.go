// Package device makes a FUSE connection: it opens /dev/fuse, mounts it, and
// negotiates with the kernel, so that whoever has the descriptor and the saved
// INIT can serve, now or after the death of who served before.
//
// # Guarantees
//
//   - D1: as root, nobody sees a mount before Attach, so no request comes before
//     somebody serves. Proven by TestDevice_AttachShowsIt.
//
//   - D2: a dead mount is replaced without a moment in which the directory below
//     is bare, from Linux 6.5 on. Proven by TestDevice_AttachReplacesDead.
//
//   - D3: the kernel sends no INTERRUPT over the connection. Proven by
//     TestDevice_NoInterrupts.
//
// # What is negotiated
//
// It is decided here and nowhere else: the reply to INIT is made here, and the
// INIT that is saved offers exactly what was agreed, so that no later version of
// a library that is fed with it can take it for more. Interrupts are switched
// off, since a server that takes over does not know the requests that they are
// for, and none of ours may end with EINTR.
package device

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Device is a connection to the kernel's FUSE, mounted or about to be.
type Device struct {
	// FD is /dev/fuse, nonblocking, closed on exec.
	FD int

	// Init is the INIT request of the kernel, offering what was agreed.
	Init []byte

	// Resend says that the kernel sends requests again on demand (Linux 6.9).
	Resend bool

	dir    string
	source string
	mount  int  // the mount that is nowhere yet; -1 once it is attached
	direct bool // mounted by ourselves, not by fusermount3
}

// Open makes a connection for a directory. As root the mount is not visible
// before Attach; otherwise fusermount3 mounts it at once, for the user alone.
func Open(dir string) (*Device, error) { return OpenNamed(dir, "spoolfs") }

// OpenNamed is Open with what the mount is said to be of, in /proc/mounts:
// "mount -a" takes for mounted what has the source and the directory of fstab.
func OpenNamed(dir, source string) (*Device, error) {
	dir, err := ResolveParent(dir)
	if err != nil {
		return nil, fmt.Errorf("mount on %q: %w", dir, err)
	}
	d := &Device{FD: -1, mount: -1, dir: dir, source: source, direct: os.Geteuid() == 0}
	if err := d.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("mount on %q: %w", dir, err), d.abandon())
	}
	return d, nil
}

// Adopt is the connection of a former process, by its descriptor and the INIT
// that was saved.
func Adopt(dir string, fd int, init []byte, resend bool) (*Device, error) {
	dir, err := ResolveParent(dir)
	return &Device{FD: fd, Init: init, Resend: resend, dir: dir, mount: -1, direct: os.Geteuid() == 0}, err
}

func (d *Device) open() error {
	if _, err := isDead(d.dir); err != nil {
		return err
	}
	var err error
	if d.direct {
		err = d.openDirect()
	} else {
		err = d.openByHelper()
	}
	if err != nil {
		return err
	}
	reply, err := d.readInit()
	if err != nil {
		return err
	}
	if err := d.write(reply); err != nil {
		return fmt.Errorf("answer INIT: %w", err)
	}
	if err := d.stopInterrupts(); err != nil {
		return err
	}
	// Its readers wait in poll(2), which a stop can end, and not in read(2).
	return unix.SetNonblock(d.FD, true)
}

// Dir is the directory of the mount, with the links above it followed.
func (d *Device) Dir() string { return d.dir }

// abandon takes back what Open has done.
func (d *Device) abandon() error {
	var err error
	if d.mount >= 0 {
		err = unix.Close(d.mount)
		d.mount = -1
	} else if d.FD >= 0 {
		err = d.Detach()
	}
	return errors.Join(err, d.Close())
}

// Close closes the descriptor. If it is the last one, who waits for an answer
// gets ECONNABORTED, and everybody else from then on ENOTCONN.
func (d *Device) Close() error {
	var err error
	if d.mount >= 0 {
		err = unix.Close(d.mount)
		d.mount = -1
	}
	if d.FD >= 0 {
		err = errors.Join(err, unix.Close(d.FD))
		d.FD = -1
	}
	return err
}

// write answers a request, or tells the kernel something.
func (d *Device) write(b []byte) error {
	_, err := ignoringEINTR(func() (int, error) { return unix.Write(d.FD, b) })
	return err
}

// ignoringEINTR calls again what a signal has interrupted.
func ignoringEINTR(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// ResolveParent follows links, as a mount is on a directory and not on a name. The
// last element is not asked if it is a directory: it may be a dead mount.
func ResolveParent(dir string) (string, error) {
	for range 40 { // as many as the kernel follows
		target, err := os.Readlink(dir)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(dir), target)
		}
		dir = target
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
	return filepath.Join(parent, filepath.Base(dir)), err
}
