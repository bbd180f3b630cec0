package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// thresholds are the limits of "spoolfs status --check", besides what is always a
// problem. 0 is none.
type thresholds struct {
	WarnWaiting uint64        `placeholder:"N" env:"-" help:"Messages that wait (ready, on their way or delayed) from which on it is a warning."`
	CritWaiting uint64        `placeholder:"N" env:"-" help:"The same for critical."`
	WarnAge     time.Duration `placeholder:"DURATION" env:"-" help:"Age of the oldest message that waits."`
	CritAge     time.Duration `placeholder:"DURATION" env:"-" help:"The same for critical."`
	WarnDead    uint64        `placeholder:"N" env:"-" help:"Dead letters and partial files together (1 dead letter)."`
	CritDead    uint64        `placeholder:"N" env:"-" help:"The same for critical."`
	WarnFill    float64       `placeholder:"PERCENT" env:"-" help:"Fill of the store in percent (80)."`
	CritFill    float64       `placeholder:"PERCENT" env:"-" help:"The same for critical."`
}

func (t *thresholds) check() error {
	if min(t.WarnAge, t.CritAge) < 0 || min(t.WarnFill, t.CritFill) < 0 {
		return withCode(exitUsage, errors.New("thresholds cannot be negative"))
	}
	for _, p := range []struct {
		name       string
		warn, crit float64
	}{
		{"waiting", float64(t.WarnWaiting), float64(t.CritWaiting)}, {"age", t.WarnAge.Seconds(), t.CritAge.Seconds()},
		{"dead", float64(t.WarnDead), float64(t.CritDead)}, {"fill", t.WarnFill, t.CritFill},
	} {
		if p.crit != 0 && p.warn > p.crit {
			return withCode(exitUsage, fmt.Errorf("--warn-%s is over --crit-%s", p.name, p.name))
		}
	}
	return nil
}

// The exit codes of monitoring plugins.
const (
	monitorOK       = 0
	monitorWarning  = 1
	monitorCritical = 2
	monitorUnknown  = 3
)

// checked is a judgement for monitoring, as --check --json prints it. Keys are
// added later and never renamed.
type checked struct {
	State    string    `json:"state"` // OK, WARNING, CRITICAL or UNKNOWN
	Code     int       `json:"code"`
	Problems []problem `json:"problems"`
	Text     string    `json:"text"`
	Perfdata string    `json:"perfdata"`
}

// judge is "spoolfs status --check". That nobody answers is critical; that it
// cannot be found out, unknown.
func (c *statusCommand) judge(env *environment) error {
	var k checked
	cl, err := c.open(env)
	if err == nil {
		var s status
		if s, err = cl.status(); err == nil {
			k = c.thresholds.judge(s)
		}
		cl.close()
	}
	if err != nil {
		k = checked{State: "UNKNOWN", Code: monitorUnknown, Problems: []problem{}, Text: err.Error()}
		if codeOf(err) == exitUnavailable {
			k.State, k.Code = "CRITICAL", monitorCritical
		}
	}
	text := []byte(k.line() + "\n")
	if c.JSON {
		text = jsonText(k)
	}
	if _, err := env.stdout.Write(text); err != nil {
		return withCode(monitorUnknown, err)
	}
	return exitStatus(k.Code)
}

// line is the output of a plugin. A bar begins the performance data.
func (k *checked) line() string {
	line := "SPOOLFS " + k.State + " - " + strings.ReplaceAll(strings.Join(strings.Fields(k.Text), " "), "|", "/")
	if k.Perfdata != "" {
		line += " | " + k.Perfdata
	}
	return line
}

// judge adds the thresholds to the health of a status. Where one is given it
// decides, and not what health says of the same thing.
func (t *thresholds) judge(s status) checked {
	k := checked{State: "OK", Problems: []problem{}}
	for _, p := range s.Health.Problems {
		switch {
		case p.Code == "dead-letters" && (t.WarnDead != 0 || t.CritDead != 0):
		case p.Code == "filling" && (t.WarnFill != 0 || t.CritFill != 0):
		default:
			k.add(p)
		}
	}
	for _, p := range t.problems(s) {
		k.add(p)
	}
	var texts []string
	for _, p := range k.Problems {
		texts = append(texts, p.Text)
	}
	texts = append(texts, gist(&s))
	k.Text, k.Perfdata = strings.Join(texts, "; "), t.perfdata(s)
	return k
}

func (k *checked) add(p problem) {
	k.Problems = append(k.Problems, p)
	code, state := monitorWarning, "WARNING"
	if p.Level == levelCritical {
		code, state = monitorCritical, "CRITICAL"
	}
	if code > k.Code {
		k.Code, k.State = code, state
	}
}

// problems are what is over a threshold.
func (t *thresholds) problems(s status) []problem {
	var all []problem
	over := func(code, what, value string, is, warn, crit float64) {
		level := levelWarning
		switch {
		case crit != 0 && is >= crit:
			level = levelCritical
		case warn == 0 || is < warn:
			return
		}
		all = append(all, problem{Code: code, Level: level, Text: what + " " + value})
	}
	aside := s.Queue.Dead + s.Queue.Partial
	over("waiting", "messages that wait:", grouped(waiting(&s)), float64(waiting(&s)), float64(t.WarnWaiting), float64(t.CritWaiting))
	over("age", "the oldest waits for", age(oldestSeconds(s)), oldestSeconds(s), t.WarnAge.Seconds(), t.CritAge.Seconds())
	over("dead", "set aside:", grouped(aside), float64(aside), float64(t.WarnDead), float64(t.CritDead))
	over("fill", "the store is full to", fmt.Sprintf("%.0f %%", fill(s)), fill(s), t.WarnFill, t.CritFill)
	return all
}

// oldestSeconds is the age of the oldest message that waits.
func oldestSeconds(s status) float64 {
	if s.Queue.Ready+s.Queue.Leased == 0 {
		return 0
	}
	return s.Queue.OldestReadySeconds
}

// fill is that of the store in percent.
func fill(s status) float64 {
	full := s.Queue.Bytes + s.Queue.FreeBytes
	if full == 0 {
		return 0
	}
	return 100 * float64(s.Queue.Bytes) / float64(full)
}

// perfdata are numbers as 'label'=value[unit];warn;crit;min;max.
func (t *thresholds) perfdata(s status) string {
	limit := func(v float64) string {
		if v == 0 {
			return ""
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	value := func(label string, v float64, unit string, warn, crit float64) string {
		return fmt.Sprintf("%s=%s%s;%s;%s;0", label, strconv.FormatFloat(v, 'f', -1, 64), unit, limit(warn), limit(crit))
	}
	q, p := s.Queue, s.Publisher
	return strings.Join([]string{
		value("waiting", float64(waiting(&s)), "", float64(t.WarnWaiting), float64(t.CritWaiting)),
		value("oldest", oldestSeconds(s), "s", t.WarnAge.Seconds(), t.CritAge.Seconds()),
		value("dead", float64(q.Dead), "", 0, 0),
		value("partial", float64(q.Partial), "", 0, 0),
		value("set_aside", float64(q.Dead+q.Partial), "", float64(t.WarnDead), float64(t.CritDead)),
		value("fill", float64(int(fill(s)*100))/100, "%", t.WarnFill, t.CritFill),
		value("bytes", float64(q.Bytes), "B", 0, 0),
		value("ingested", float64(ingested(&s)), "c", 0, 0),
		value("confirmed", float64(p.ConfirmedTotal), "c", 0, 0),
	}, " ")
}
