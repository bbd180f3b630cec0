package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// waitCommand is "spoolfs wait".
type waitCommand struct {
	Empty   bool          `required:"" env:"-" help:"Wait until nothing is staged, ready, on its way or delayed. Dead letters do not count."`
	Timeout time.Duration `env:"-" placeholder:"DURATION" help:"How long at most (no limit)."`
	Route   string        `placeholder:"NAME" env:"-" help:"Wait for what is in this route (all routes)."`
	JSON    bool          `name:"json" env:"-" help:"Print what is left at the end as JSON."`
	target
}

// Help is shown by kong.
func (*waitCommand) Help() string {
	return `It ends with 0 when the queue is empty, and with 75 at the timeout. A daemon
that is restarted meanwhile is waited for, one that does not answer for
half a minute is not (69).

Examples:

    spoolfs wait --empty --timeout=10m      # before a node is shut down
    spoolfs wait --empty || spoolfs status
`
}

// waitPatience is how long a daemon may be away.
const waitPatience = 30 * time.Second

// waitInterval is how often the daemon is asked.
const waitInterval = 100 * time.Millisecond

// waited is what "spoolfs wait --json" prints.
type waited struct {
	Empty   bool   `json:"empty"`
	Staged  uint64 `json:"staged"`
	Ready   uint64 `json:"ready"`
	Leased  uint64 `json:"leased"`
	Delayed uint64 `json:"delayed"`
	Dead    uint64 `json:"dead"`
}

// Run is called by kong.
func (c *waitCommand) Run(env *environment) error {
	if c.Timeout < 0 {
		return withCode(exitUsage, fmt.Errorf("--timeout=%s: want more than 0, such as 10m", c.Timeout))
	}
	cl, err := c.open(env)
	if err != nil {
		return err
	}
	defer cl.close()
	left, err := c.wait(cl)
	if c.JSON && (err == nil || codeOf(err) == exitTemporary) {
		_, e := env.stdout.Write(jsonText(left))
		err = errors.Join(err, e)
	}
	return err
}

func (c *waitCommand) wait(cl *client) (waited, error) {
	ticker := time.NewTicker(waitInterval)
	defer ticker.Stop()
	var timeout <-chan time.Time
	if c.Timeout > 0 {
		timeout = time.After(c.Timeout)
	}
	var left waited
	var silent error // why there is no answer at the moment
	answered := time.Now()
	for {
		s, err := cl.status()
		if err == nil {
			q, err := c.queueIn(s)
			if err != nil {
				return left, err
			}
			left = waited{q.Staged+q.Ready+q.Leased+q.Delayed == 0, q.Staged, q.Ready, q.Leased, q.Delayed, q.Dead}
			answered, silent = time.Now(), nil
		} else if silent == nil {
			silent = err
		}
		switch {
		case err == nil && left.Empty:
			return left, nil
		case err != nil && (codeOf(err) != exitUnavailable || time.Since(answered) > waitPatience):
			return left, err
		}
		select {
		case <-ticker.C:
		case <-timeout:
			return left, c.timedOut(left, silent)
		case <-cl.ctx.Done():
			return left, withCode(exitTemporary, errors.New("interrupted"))
		}
	}
}

// queueIn is the queue that is waited for.
func (c *waitCommand) queueIn(s status) (queueStatus, error) {
	if c.Route == "" {
		return s.Queue, nil
	}
	if _, there := s.Routes[c.Route]; !there {
		return queueStatus{}, withCode(exitUsage, fmt.Errorf("there is no route %q; there are: %s", c.Route, strings.Join(s.routeNames(), " ")))
	}
	return s.of(c.Route).Queue, nil
}

func (c *waitCommand) timedOut(left waited, silent error) error {
	if silent != nil {
		return withCode(exitTemporary, fmt.Errorf("after %s: %w", c.Timeout, silent))
	}
	return withCode(exitTemporary, fmt.Errorf("not empty after %s: %d ready, %d on their way, %d delayed, %d staged", c.Timeout, left.Ready, left.Leased, left.Delayed, left.Staged))
}
