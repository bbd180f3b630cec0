package main

import (
	"fmt"
	"io"
	"strings"
)

// The states of a finding.
const (
	findingOK      = "ok"
	findingWarning = "warning"
	findingFailed  = "failed"
	findingSkipped = "skipped"
)

// finding is the result of one check. Keys are added, never renamed.
type finding struct {
	Check  string `json:"check"`
	State  string `json:"state"`
	Text   string `json:"text"`
	Advice string `json:"advice,omitempty"`

	// Steps is how far a broker let us come, in order; the last one is where
	// it failed, if it did.
	Steps []string `json:"steps,omitempty"`

	code int // exit code of a failure
}

// findings are those of all checks.
type findings struct {
	OK   bool      `json:"ok"` // nothing has failed
	List []finding `json:"findings"`
}

func (f *findings) add(all ...finding) {
	f.List = append(f.List, all...)
}

// judge sets OK.
func (f *findings) judge() {
	f.OK = f.code() == exitOK
}

// code is the exit code: that of the first failure.
func (f *findings) code() int {
	for _, one := range f.List {
		if one.State == findingFailed {
			return one.code
		}
	}
	return exitOK
}

// write shows them to people.
func (f *findings) write(w io.Writer) error {
	var b strings.Builder
	for _, one := range f.List {
		lines := strings.Split(one.Text, "\n")
		fmt.Fprintf(&b, "%-8s %-14s %s\n", one.State, one.Check, lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(&b, "%-23s %s\n", "", line)
		}
		if one.Advice != "" {
			fmt.Fprintf(&b, "%-23s to do: %s\n", "", one.Advice)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// good, warned, failed and skipped make findings.
func good(check, format string, args ...any) finding {
	return finding{Check: check, State: findingOK, Text: fmt.Sprintf(format, args...)}
}

func warned(check, advice, format string, args ...any) finding {
	return finding{Check: check, State: findingWarning, Text: fmt.Sprintf(format, args...), Advice: advice}
}

func failed(check string, code int, advice, format string, args ...any) finding {
	return finding{Check: check, State: findingFailed, Text: fmt.Sprintf(format, args...), Advice: advice, code: code}
}

func skipped(check, format string, args ...any) finding {
	return finding{Check: check, State: findingSkipped, Text: fmt.Sprintf(format, args...)}
}
