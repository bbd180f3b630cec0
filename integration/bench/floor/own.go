package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"runtime"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"spoolfs/fs/device"
)

// own serves a null file system as spoolfs does: a reader for each CPU reads,
// handles and replies; a FLUSH, which waits for the disk, gets a goroutine.
type own struct {
	device *device.Device
	proto  *fuse.ProtocolServer
	wait   int // epoll
	all    sync.WaitGroup
}

// serveOwn mounts on dir and puts what is written into a database in store.
func serveOwn(ctx context.Context, dir, store string, stdout io.Writer) error {
	db, err := openDB(store)
	if err != nil {
		return fmt.Errorf("open %q: %w", store, err)
	}
	defer db.Close()
	d, err := device.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	o := &own{device: d, proto: fuse.NewProtocolServer(newNull(putInto(db)), &fuse.MountOptions{
		MaxWrite: device.MaxWrite, MaxBackground: device.MaxBackground,
		DisableXAttrs: true, DisableReadDirPlus: true, Logger: log.New(io.Discard, "", 0),
	})}
	if err := o.start(); err != nil {
		return err
	}
	if err := d.Attach(); err != nil {
		return err
	}
	fmt.Fprintln(stdout, "ready")
	<-ctx.Done()
	err = d.Detach()
	o.all.Wait()
	return err
}

// openDB opens Pebble with what the queue sets.
func openDB(dir string) (*pebble.DB, error) {
	o := &pebble.Options{FormatMajorVersion: pebble.FormatNewest, MemTableSize: 8 << 20, CacheSize: 16 << 20, Logger: silent{}}
	for i := range o.Levels {
		o.Levels[i].BlockSize = 32 << 10
	}
	return pebble.Open(dir, o)
}

// silent is a logger of Pebble that says the worst only.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}

func (silent) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }

func putInto(db *pebble.DB) func([]byte) error {
	return func(data []byte) error {
		var key [16]byte
		rand.Read(key[:])
		return db.Set(key[:], data, pebble.Sync)
	}
}

func (o *own) start() (err error) {
	if _, st := o.proto.HandleRequest([][]byte{o.device.Init}, [][]byte{make([]byte, 4096)}); !st.Ok() {
		return fmt.Errorf("negotiate: %v", st)
	}
	if o.wait, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	event := &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(o.device.FD)}
	if err := unix.EpollCtl(o.wait, unix.EPOLL_CTL_ADD, o.device.FD, event); err != nil {
		return err
	}
	for range runtime.NumCPU() {
		o.all.Go(o.read)
	}
	return nil
}

// read takes requests until the mount is gone.
func (o *own) read() {
	const flush = 25
	in, out := make([]byte, device.RequestSize), make([]byte, 4096)
	for {
		n, err := unix.Read(o.device.FD, in)
		switch {
		case errors.Is(err, unix.EAGAIN):
			var events [1]unix.EpollEvent
			unix.EpollWait(o.wait, events[:], -1)
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOENT):
		case err != nil:
			return
		case binary.NativeEndian.Uint32(in[4:]) == flush:
			request := append([]byte(nil), in[:n]...)
			o.all.Go(func() { o.answer(request, make([]byte, 256)) })
		default:
			o.answer(in[:n], out)
		}
	}
}

func (o *own) answer(in, out []byte) {
	if n, _ := o.proto.HandleRequest([][]byte{in}, [][]byte{out}); n > 0 {
		unix.Write(o.device.FD, out[:n]) // an error says that nobody waits for it
	}
}
