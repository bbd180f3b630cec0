package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// syslogPlace is the log's place if no other is named.
const syslogPlace = "syslog"

// backgroundLog is where a daemon in the background writes its log: a file, or a
// pipe to logger(1), which passes it on to the system's log, whether that is the
// journal or a syslog daemon that comes and goes. Until the daemon serves it is
// read here, for the error if it does not.
type backgroundLog struct {
	to   *os.File // what the daemon gets
	from *os.File // the end of the pipe that is read; nil for a file
	path string   // of the file
	size int64    // of the file before

	said    strings.Builder
	reading sync.WaitGroup
}

// openBackgroundLog opens a file, or, for "syslog" and "", a pipe.
func openBackgroundLog(place string) (*backgroundLog, error) {
	if place == "" || place == syslogPlace {
		from, to, err := os.Pipe()
		return &backgroundLog{from: from, to: to}, err
	}
	if place[0] != '/' {
		return nil, fmt.Errorf("want an absolute path, or %s, not %q", syslogPlace, place)
	}
	to, err := os.OpenFile(place, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return nil, err
	}
	info, err := to.Stat()
	if err != nil {
		return nil, errors.Join(err, to.Close())
	}
	return &backgroundLog{to: to, path: place, size: info.Size()}, nil
}

// environ is the daemon's environment. On the pipe its lines have priorities, as
// for the journal.
func (l *backgroundLog) environ() []string {
	env := os.Environ()
	if l.from == nil {
		return env
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(int(l.to.Fd()), &st); err != nil {
		return env
	}
	return append(env, fmt.Sprintf("JOURNAL_STREAM=%d:%d", st.Dev, st.Ino))
}

// started begins to read what the daemon says.
func (l *backgroundLog) started() {
	if l.from == nil {
		return
	}
	l.to.Close() // the daemon has it
	l.reading.Go(func() {
		// It ends with the daemon, or by stopReading.
		_, _ = io.Copy(&l.said, l.from)
	})
}

func (l *backgroundLog) stopReading() error {
	err := l.from.SetReadDeadline(time.Now())
	l.reading.Wait()
	return err
}

// explain adds to an error what the daemon has said.
func (l *backgroundLog) explain(err error) error {
	var said []byte
	if l.from != nil {
		if e := l.stopReading(); e != nil {
			return errors.Join(err, e)
		}
		said = []byte(l.said.String())
	} else if text, e := os.ReadFile(l.path); e == nil && int64(len(text)) > l.size {
		said = text[l.size:]
	}
	if text := saidBy(said); text != "" {
		return fmt.Errorf("%w\n%s", err, text)
	}
	return err
}

// goOn leaves the log to itself.
func (l *backgroundLog) goOn() error {
	if l.from == nil {
		return nil
	}
	if err := l.stopReading(); err != nil {
		return err
	}
	if err := logger(strings.NewReader(l.said.String())).Run(); err != nil {
		return fmt.Errorf("%s: %w", loggerName, err)
	}
	cmd := logger(l.from)
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

const loggerName = "logger"

// logger is a process that passes lines on to the system's log. It ends with who
// writes them.
func logger(lines io.Reader) *exec.Cmd {
	cmd := exec.Command(loggerName, "--tag", "spoolfs", "--priority", "daemon.info", "--prio-prefix")
	cmd.Stdin, cmd.Dir = lines, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

func (l *backgroundLog) close() {
	l.to.Close()
	if l.from != nil {
		l.from.Close()
	}
}
