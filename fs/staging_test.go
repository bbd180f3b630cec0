package fs

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// syncBuffer is a log that may be read.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestFS_JunkDoesNotFloodTheLog: files of junk are counted, and only some logged.
func TestFS_JunkDoesNotFloodTheLog(t *testing.T) {
	log := &syncBuffer{}
	r := newRig(t, Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	const files = 4 * asideLogBurst
	for i := range files {
		r.as(1).put(fmt.Sprintf("f%d", i), "junk\n")
	}
	if got := r.fs.Stats().IngestedDeadTotal; got != files {
		t.Errorf("%d dead letters counted, want %d", got, files)
	}
	if got := strings.Count(log.String(), "set aside"); got < asideLogBurst || got > 2*asideLogBurst {
		t.Errorf("%d files logged, want about %d", got, asideLogBurst)
	}
}
