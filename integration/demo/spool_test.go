package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Guarantee 2, when spoolfs dies and leaves its mount.
func TestSpool_CloseAfterKill(t *testing.T) {
	s, err := newSpool(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.start(t.Context(), "exchange", "stdout:"); err != nil {
		t.Error(err)
	} else {
		s.KillGroup()
		<-s.Done()
		if !isMounted(s.mountpoint()) {
			t.Error("the mount is gone: the test does not test")
		}
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if isMounted(s.mountpoint()) {
		t.Error("the mount is left")
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory: got %v", err)
	}
}

// Guarantee 3: a mount that does not answer, here a FIFO that nobody writes to,
// makes nobody wait.
func TestSpool_ReadEnds(t *testing.T) {
	s, err := newSpool(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		os.Remove(filepath.Join(s.mountpoint(), "silent"))
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	fifo := filepath.Join(s.mountpoint(), "silent")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	cancel(reason)
	if _, err := s.read(ctx, "silent"); !errors.Is(err, reason) {
		t.Errorf("got error %v, want %v", err, reason)
	}
	// Opening it for writing waits for the reader, and closing it ends him.
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
