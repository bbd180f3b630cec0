package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"spoolfs/fs"
	"spoolfs/queue"
)

// maxJobs is how many jobs are remembered.
const maxJobs = 32

// jobs are the operations on many messages that operators have begun, the last
// ones: .status/jobs.
type jobs struct {
	mu   sync.Mutex
	list []*job
}

// job is one of them.
type job struct {
	id, command string
	uid         uint32
	began       time.Time
	operation   *fs.Operation

	mu    sync.Mutex
	ended time.Time
	err   error
}

// jobStatus is a line of .status/jobs. Keys are added later and never renamed.
type jobStatus struct {
	ID      string            `json:"id"`
	Command string            `json:"command"`
	UID     uint32            `json:"uid"`
	State   string            `json:"state"` // running, done or failed
	Began   time.Time         `json:"began"`
	Seconds float64           `json:"seconds"` // so far
	Looked  uint64            `json:"looked"`  // at
	Matched uint64            `json:"matched"`
	Done    uint64            `json:"done"`
	Refused uint64            `json:"refused"` // are no messages, and stay
	Refusal string            `json:"refusal"` // the reason of the last of them
	Reasons map[string]uint64 `json:"reasons"` // of what matched
	Error   string            `json:"error"`
}

// The states of a job.
const (
	jobRunning = "running"
	jobDone    = "done"
	jobFailed  = "failed"
)

func (j *job) status() jobStatus {
	t := j.operation.Tally()
	j.mu.Lock()
	defer j.mu.Unlock()
	s := jobStatus{
		ID: j.id, Command: j.command, UID: j.uid, State: jobRunning, Began: j.began, Seconds: seconds(time.Since(j.began)),
		Looked: t.Looked, Matched: t.Matched, Done: t.Done, Refused: t.Refused, Refusal: t.Refusal, Reasons: t.Reasons,
	}
	if !j.ended.IsZero() {
		s.State, s.Seconds = jobDone, seconds(j.ended.Sub(j.began))
	}
	if j.err != nil {
		s.State, s.Error = jobFailed, j.err.Error()
	}
	return s
}

func (j *job) run() {
	err := j.operation.Run()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended, j.err = time.Now(), err
}

// text are the jobs as lines of JSON, the oldest first.
func (js *jobs) text() []byte {
	js.mu.Lock()
	list := slices.Clone(js.list)
	js.mu.Unlock()
	var b bytes.Buffer
	for _, j := range list {
		line, err := json.Marshal(j.status())
		if err != nil {
			line = []byte(`{"error": "a job that cannot be shown"}`)
		}
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}

func (js *jobs) add(j *job) {
	js.mu.Lock()
	defer js.mu.Unlock()
	js.list = append(js.list, j)
	js.list = slices.Delete(js.list, 0, max(0, len(js.list)-maxJobs))
}

// jobCommand is the command of ctl that does something to many messages.
func (d *daemon) jobCommand(action fs.Action, help string) fs.Command {
	return fs.Command{Help: help, Begin: func(args []string, uid uint32) error {
		id, sel, err := parseSelection(args, time.Now())
		if err != nil {
			return err
		}
		operation, err := d.fs.NewOperation(action, sel)
		if err != nil {
			return err
		}
		j := &job{
			id: id, command: strings.TrimSuffix(strings.Join(append([]string{string(action)}, args...), " "), " job="+id),
			uid: uid, began: time.Now(), operation: operation,
		}
		d.jobs.add(j)
		d.background.Go(func() { d.runJob(j) })
		return nil
	}}
}

func (d *daemon) runJob(j *job) {
	j.run()
	s := j.status()
	d.log.Info("job "+s.State, "command", s.Command, "uid", s.UID, "matched", s.Matched, "done", s.Done, "refused", s.Refused, "error", s.Error)
}

// jobStates are the words of the states of messages.
var jobStates = map[string]queue.State{
	"pending": queue.Pending, "delayed": queue.Delayed, "dead": queue.Dead, "partial": queue.Partial,
}

// parseSelection reads the arguments of such a command: a state, and key=value
// with values that are escaped as in the query of a URL.
//
// Errors: EINVAL.
func parseSelection(args []string, now time.Time) (id string, sel fs.Selection, err error) {
	if len(args) == 0 || jobStates[args[0]] == 0 {
		return "", sel, fmt.Errorf("want pending, delayed, dead or partial: %w", syscall.EINVAL)
	}
	sel.State = jobStates[args[0]]
	for _, arg := range args[1:] {
		key, escaped, _ := strings.Cut(arg, "=")
		value, err := url.QueryUnescape(escaped)
		switch {
		case err != nil:
		case key == "route":
			sel.Route = value
		case key == "reason":
			sel.Reason = value
		case key == "job":
			id = value
		case key == "older-than":
			var age time.Duration
			age, err = time.ParseDuration(value)
			sel.Before = now.Add(-age)
		default:
			err = fmt.Errorf("unknown key %q", key)
		}
		if err != nil {
			return "", sel, fmt.Errorf("%q: %w: %w", arg, syscall.EINVAL, err)
		}
	}
	return id, sel, nil
}
