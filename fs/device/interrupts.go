package device

import (
	"encoding/binary"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// interruptBit in the id of a reply says that it is the reply to an INTERRUPT.
const interruptBit = 1

// stopInterrupts makes the kernel send no INTERRUPT over this connection: it
// stops once one has been answered with ENOSYS, and takes that for an answer for
// any request that is being processed. So a thread of ours asks for the state of
// the file system, which nobody serves yet.
//
// If the process is killed between the reading of that request and its answer,
// some microseconds, the thread cannot die and the mount hangs until it is
// aborted; nobody has seen the mount yet then.
func (d *Device) stopInterrupts() error {
	thread := make(chan int, 1)
	asked := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		thread <- unix.Gettid()
		asked <- d.statfs()
	}()
	if err := d.refuseInterrupts(uint32(<-thread)); err != nil {
		return fmt.Errorf("switch interrupts off: %w", err)
	}
	<-asked // EIO, from us
	return nil
}

func (d *Device) statfs() error {
	var st unix.Statfs_t
	if d.mount >= 0 {
		return unix.Fstatfs(d.mount, &st)
	}
	return unix.Statfs(d.dir, &st)
}

// refuseInterrupts reads requests until it has that of our thread. Those of
// others, which only come where the mount is visible already, are left to the
// server, which has them sent again.
func (d *Device) refuseInterrupts(thread uint32) error {
	b := make([]byte, RequestSize)
	for {
		if _, err := ignoringEINTR(func() (int, error) { return unix.Read(d.FD, b) }); err != nil {
			return err
		}
		unique := binary.NativeEndian.Uint64(b[uniqueAt:])
		if err := d.write(errorReply(unique|interruptBit, unix.ENOSYS)); err != nil {
			return err
		}
		if binary.NativeEndian.Uint32(b[opcodeAt:]) == opStatfs && binary.NativeEndian.Uint32(b[pidAt:]) == thread {
			return d.Refuse(unique, unix.EIO)
		}
		if !d.Resend {
			if err := d.Refuse(unique, unix.EAGAIN); err != nil {
				return err
			}
		}
	}
}
