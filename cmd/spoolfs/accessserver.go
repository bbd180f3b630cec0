package main

import (
	"bytes"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A daemon that hangs takes with it whoever asks it: a process that waits for an
// answer of FUSE may not even be killed. So the commands leave that to a child,
// the access server, and wait for the child as long as they like. It shares no
// descriptor with them, so that nobody who reads their output waits for it.

// accessCommand is the child. It answers requests until its input ends.
type accessCommand struct{}

// Run is called by kong.
func (*accessCommand) Run(*environment) error {
	s := &accessServer{}
	in, out := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	for {
		var r accessRequest
		if err := in.Decode(&r); err != nil {
			return nil // the command has ended
		}
		if err := out.Encode(s.answer(r)); err != nil {
			return nil
		}
	}
}

// accessOp is what is to be done.
type accessOp string

// The operations.
const (
	opRead   accessOp = "read"   // the whole of Path
	opStat   accessOp = "stat"   // Path
	opWrite  accessOp = "write"  // Data into Path, in one piece
	opRemove accessOp = "remove" // Path
	opRename accessOp = "rename" // Path to To
	opList   accessOp = "list"   // begins to list Path, and is a first opMore
	opMore   accessOp = "more"   // the next names; none at the end
	opHeads  accessOp = "heads"  // of Names in Path, as many as there is time for
)

type accessRequest struct {
	Op       accessOp
	Path, To string
	Data     []byte
	Names    []string
}

type accessReply struct {
	Data  []byte
	Names []string
	Heads []messageHead
	Info  accessInfo
	Errno syscall.Errno
	Error string // if it is no Errno
}

// messageHead is the head of a message as the status tree shows it; nil if it is
// gone meanwhile.
type messageHead []byte

// accessInfo is what opStat tells.
type accessInfo struct{ GID uint32 }

// accessServer answers requests.
type accessServer struct{ dir *os.File }

func (s *accessServer) answer(r accessRequest) accessReply {
	var a accessReply
	err := s.do(r, &a)
	if err != nil && !errors.As(err, &a.Errno) {
		a.Error = err.Error()
	}
	return a
}

func (s *accessServer) do(r accessRequest, a *accessReply) (err error) {
	switch r.Op {
	case opRead:
		a.Data, err = os.ReadFile(r.Path)
	case opStat:
		var st syscall.Stat_t
		err = syscall.Lstat(r.Path, &st)
		a.Info.GID = st.Gid
	case opWrite:
		err = writeOnce(r.Path, r.Data)
	case opRemove:
		err = syscall.Unlink(r.Path)
	case opRename:
		err = os.Rename(r.Path, r.To)
	case opList:
		if s.dir != nil {
			s.dir.Close()
		}
		if s.dir, err = os.Open(r.Path); err == nil {
			a.Names, err = s.more()
		}
	case opMore:
		a.Names, err = s.more()
	case opHeads:
		a.Heads, err = readHeads(r.Path, r.Names)
	default:
		err = syscall.ENOSYS
	}
	return err
}

// namesAtOnce bounds an answer to opList and opMore.
const namesAtOnce = 256

func (s *accessServer) more() ([]string, error) {
	names, err := s.dir.Readdirnames(namesAtOnce)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

func writeOnce(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// headsTime is how long opHeads goes on.
const headsTime = time.Second

func readHeads(dir string, names []string) ([]messageHead, error) {
	began := time.Now()
	var heads []messageHead
	for _, name := range names {
		head, err := readHead(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return heads, err
		}
		heads = append(heads, head)
		if time.Since(began) > headsTime {
			break
		}
	}
	return heads, nil
}

// maxHead bounds a head: AMQP does not take more in headers, either.
const maxHead = 256 << 10

// readHead reads up to the empty line that ends the head.
func readHead(path string) (messageHead, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var head []byte
	for size := 2 << 10; size <= maxHead; size *= 2 {
		head = append(head, make([]byte, size-len(head))...)
		n, err := f.ReadAt(head, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		head = head[:n]
		if end := bytes.Index(head, []byte("\n\n")); end >= 0 {
			return head[:end+1], nil
		}
		if n < size {
			break
		}
	}
	return head, nil
}
