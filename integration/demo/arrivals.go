package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"spoolfs/integration/rabbit"
)

// arrivals counts what the broker was given.
type arrivals struct {
	paths map[string]int // by relPath; 0: has not arrived
	ids   map[string]int

	strangers []string // what nobody has written
}

// newArrivals expects each file of the jobs.
func newArrivals(jobs []job) *arrivals {
	a := &arrivals{paths: map[string]int{}, ids: map[string]int{}}
	for _, j := range jobs {
		for n := j.first; n < j.first+j.count; n++ {
			a.paths[j.relPath(n)] = 0
		}
	}
	return a
}

func (a *arrivals) add(d rabbit.Delivery) {
	var message struct {
		RelPath string `json:"relPath"`
	}
	err := json.Unmarshal(d.Body, &message)
	if _, ok := a.paths[message.RelPath]; err != nil || !ok || d.MessageID == "" {
		a.strangers = append(a.strangers, fmt.Sprintf("%q %s", d.MessageID, d.Body))
		return
	}
	a.paths[message.RelPath]++
	a.ids[d.MessageID]++
}

// check says what is not as it should be: each message once.
func (a *arrivals) check() error {
	var missing, repeated []string
	for path, count := range a.paths {
		switch {
		case count == 0:
			missing = append(missing, path)
		case count > 1:
			repeated = append(repeated, path)
		}
	}
	if len(missing)+len(repeated)+len(a.strangers) > 0 {
		return fmt.Errorf("%s of %s messages are missing%s, %d arrived more than once%s, %d are not ours%s",
			grouped(len(missing)), grouped(len(a.paths)), examples(missing),
			len(repeated), examples(repeated), len(a.strangers), examples(a.strangers))
	}
	if len(a.ids) != len(a.paths) {
		return fmt.Errorf("%d messages have only %d different ids", len(a.paths), len(a.ids))
	}
	return nil
}

func examples(of []string) string {
	if len(of) == 0 {
		return ""
	}
	slices.Sort(of)
	return fmt.Sprintf(" (such as %s)", of[0])
}
