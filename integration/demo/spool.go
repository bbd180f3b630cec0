package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	pollInterval  = 50 * time.Millisecond
	answerTimeout = 5 * time.Second // of a file of the mount

	// brokerVariable holds the URL of the broker, out of sight of ps.
	brokerVariable = "SPOOLFS_BROKER"
)

// spool is a running spoolfs, with a directory of its own:
//
//	spool/        the mount
//	store/        the messages
//	spoolfs.log   what it said
type spool struct {
	dir     string
	program string
	*child
}

// newSpool makes the directory. Nothing runs yet.
func newSpool(program string) (*spool, error) {
	dir, err := os.MkdirTemp("", "spoolfs-demo-")
	if err != nil {
		return nil, err
	}
	s := &spool{program: program, dir: dir}
	if err := os.Mkdir(s.mountpoint(), 0o755); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *spool) mountpoint() string { return filepath.Join(s.dir, "spool") }

// args are those of the command line. The URL of the broker is not among them:
// it may hold a password.
func (s *spool) args(exchange string) []string {
	return []string{"mount", s.mountpoint(), "--store=" + filepath.Join(s.dir, "store"), "--exchange=" + exchange}
}

// start mounts, and returns when the mount answers.
func (s *spool) start(ctx context.Context, exchange, broker string) error {
	log, err := os.Create(s.logPath())
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(s.program, s.args(exchange)...)
	cmd.Env = append(withoutSettings(os.Environ()), brokerVariable+"="+broker)
	cmd.Stdout, cmd.Stderr = log, log
	if s.child, err = startChild(cmd, syscall.SIGTERM); err != nil {
		return fmt.Errorf("start spoolfs: %w", err)
	}
	_, err = s.await(ctx, func(status) bool { return true })
	return err
}

// withoutSettings leaves out what would set spoolfs up otherwise.
func withoutSettings(env []string) []string {
	var kept []string
	for _, e := range env {
		if !strings.HasPrefix(e, "SPOOLFS_") {
			kept = append(kept, e)
		}
	}
	return kept
}

// await reads the status until it is as wanted.
func (s *spool) await(ctx context.Context, wanted func(status) bool) (status, error) {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		st, err := s.status(ctx)
		switch {
		case errors.Is(err, os.ErrNotExist): // not mounted yet
		case err != nil:
			return st, err
		case wanted(st):
			return st, nil
		}
		select {
		case <-poll.C:
		case <-s.Done():
			return st, fmt.Errorf("spoolfs ended before its time: %s", s.ProcessState)
		case <-ctx.Done():
			return st, context.Cause(ctx)
		}
	}
}

func (s *spool) status(ctx context.Context) (st status, err error) {
	text, err := s.read(ctx, ".status/status.json")
	if err == nil {
		err = json.Unmarshal(text, &st)
	}
	return st, err
}

// read reads a file of the mount. A daemon that does not answer cannot make us
// wait: the read then ends with the daemon.
func (s *spool) read(ctx context.Context, name string) (text []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, fmt.Errorf("read %s: no answer for %s", name, answerTimeout))
	defer cancel()
	read := make(chan struct{})
	var content []byte
	var failure error
	go func() {
		defer close(read)
		content, failure = os.ReadFile(filepath.Join(s.mountpoint(), name))
	}()
	select {
	case <-read:
		return content, failure
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// stop asks spoolfs to end and expects that all is well then.
func (s *spool) stop(ctx context.Context) error {
	if err := s.terminate(ctx); err != nil {
		return fmt.Errorf("stop spoolfs: %w", err)
	}
	if isMounted(s.mountpoint()) {
		return errors.New("spoolfs ended, and its mount is still there")
	}
	return nil
}

// close leaves nothing, whatever has happened.
func (s *spool) close() error {
	if s.child != nil {
		ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
		defer cancel()
		s.terminate(ctx) // its error is stop's, or that of what made us close
	}
	if isMounted(s.mountpoint()) {
		if err := unmount(s.mountpoint()); err != nil {
			return err
		}
	}
	// Alone and first: it does not work while something is mounted.
	if err := os.Remove(s.mountpoint()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(s.dir)
}

func (s *spool) logPath() string { return filepath.Join(s.dir, "spoolfs.log") }

// logTail is the end of what spoolfs said, if it runs.
func (s *spool) logTail() string {
	if s == nil {
		return ""
	}
	text, err := os.ReadFile(s.logPath())
	if err != nil || len(text) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "\nthe end of spoolfs's log:\n" + indent(strings.Join(lines[max(0, len(lines)-15):], "\n"), "  ")
}
