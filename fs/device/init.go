package device

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// MaxWrite is the largest WRITE and READ request in bytes.
const MaxWrite = 128 << 10

// MaxBackground is how many RELEASEs may be under way at once.
const MaxBackground = 64

// RequestSize is the size in bytes of a buffer that holds any request.
const RequestSize = MaxWrite + 4096

// The protocol that is spoken, of include/uapi/linux/fuse.h.
const (
	major = 7
	minor = 28
)

// Flags of INIT.
const (
	asyncRead       = 1 << 0
	fileOps         = 1 << 2
	atomicTruncate  = 1 << 3 // O_TRUNC comes with the OPEN: a SETATTR of the size without a handle is truncate(2) and nothing else
	bigWrites       = 1 << 5
	autoInvalidate  = 1 << 12
	parallelDirOps  = 1 << 18
	maxPages        = 1 << 22
	extended        = 1 << 30 // there are more than 32 flags
	hasResend       = 1 << 39
	negotiatedFlags = asyncRead | fileOps | atomicTruncate | bigWrites | autoInvalidate | parallelDirOps | maxPages
)

// Places in a request, in bytes: the header, and the body of INIT.
const (
	opcodeAt    = 4
	uniqueAt    = 8
	pidAt       = 32
	headerSize  = 40
	majorAt     = headerSize
	minorAt     = headerSize + 4
	readAheadAt = headerSize + 8
	flagsAt     = headerSize + 12
	flags2At    = headerSize + 16
	initSize    = headerSize + 64
)

// Opcodes.
const (
	opStatfs = 17
	opInit   = 26
)

// readInit reads INIT, keeps it, and returns the reply.
func (d *Device) readInit() ([]byte, error) {
	b := make([]byte, RequestSize)
	n, err := ignoringEINTR(func() (int, error) { return unix.Read(d.FD, b) })
	if err != nil {
		return nil, fmt.Errorf("read INIT: %w", err)
	}
	var reply []byte
	d.Init, reply, err = negotiate(b[:n])
	if err != nil {
		return nil, err
	}
	d.Resend = flagsOf(b)&hasResend != 0
	return reply, nil
}

// Reply is the answer that INIT got, header and all.
func (d *Device) Reply() []byte {
	_, reply, err := negotiate(d.Init)
	if err != nil {
		return nil
	}
	return reply
}

// negotiate makes the INIT that offers what is agreed, and the reply.
func negotiate(request []byte) (saved, reply []byte, err error) {
	order := binary.NativeEndian
	if len(request) < flags2At || order.Uint32(request[opcodeAt:]) != opInit {
		return nil, nil, errors.New("the first request of the kernel is not INIT")
	}
	if m := order.Uint32(request[majorAt:]); m != major {
		return nil, nil, fmt.Errorf("the kernel speaks FUSE %d, and we speak %d", m, major)
	}
	saved = make([]byte, initSize) // an old kernel sends less
	copy(saved, request)
	agreed := flagsOf(saved) & negotiatedFlags
	order.PutUint32(saved[0:], initSize)
	order.PutUint32(saved[flagsAt:], uint32(agreed))
	order.PutUint32(saved[flags2At:], 0)
	return saved, initReply(saved, agreed), nil
}

// flagsOf returns the flags of INIT.
func flagsOf(request []byte) uint64 {
	flags := uint64(binary.NativeEndian.Uint32(request[flagsAt:]))
	if flags&extended != 0 && len(request) >= flags2At+4 {
		flags |= uint64(binary.NativeEndian.Uint32(request[flags2At:])) << 32
	}
	return flags
}

// initReply makes the reply:
//
//	0   length, error, unique       16  major, minor, read-ahead, flags
//	32  background, congestion      36  write size, time granularity
//	44  pages, alignment            48  flags 32-63, stack depth, and what we leave 0
func initReply(request []byte, agreed uint64) []byte {
	order := binary.NativeEndian
	b := make([]byte, 16+64)
	order.PutUint32(b[0:], uint32(len(b)))
	order.PutUint64(b[8:], order.Uint64(request[uniqueAt:]))
	order.PutUint32(b[16:], major)
	order.PutUint32(b[20:], min(minor, order.Uint32(request[minorAt:])))
	order.PutUint32(b[24:], order.Uint32(request[readAheadAt:]))
	order.PutUint32(b[28:], uint32(agreed)|extended)
	order.PutUint16(b[32:], MaxBackground)
	order.PutUint16(b[34:], MaxBackground*3/4)
	order.PutUint32(b[36:], MaxWrite)
	order.PutUint16(b[44:], uint16((MaxWrite-1)/os.Getpagesize()+1))
	order.PutUint32(b[52:], 1) // stack depth, as go-fuse says; it is for passthrough only
	return b
}

// errorReply answers a request with an errno.
func errorReply(unique uint64, errno unix.Errno) []byte {
	b := make([]byte, 16)
	binary.NativeEndian.PutUint32(b[0:], uint32(len(b)))
	binary.NativeEndian.PutUint32(b[4:], uint32(-int32(errno)))
	binary.NativeEndian.PutUint64(b[8:], unique)
	return b
}

// Refuse answers a request with an errno instead of the server. That the request
// has been answered already (ENOENT) is no error.
func (d *Device) Refuse(unique uint64, errno unix.Errno) error {
	if err := d.write(errorReply(unique, errno)); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("answer request %d: %w", unique, err)
	}
	return nil
}

// SendAgain has the kernel send again what was read and never answered.
func (d *Device) SendAgain() error {
	const notifyResend = 7
	b := make([]byte, 16)
	binary.NativeEndian.PutUint32(b[0:], uint32(len(b)))
	binary.NativeEndian.PutUint32(b[4:], notifyResend)
	if err := d.write(b); err != nil {
		return fmt.Errorf("have the kernel send requests again: %w", err)
	}
	return nil
}
