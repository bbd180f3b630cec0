package main

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// listed is a message as "spoolfs dead ls --json" and others print it. Keys are
// added later and never renamed.
type listed struct {
	ID       string            `json:"id"`
	Route    string            `json:"route"`
	State    string            `json:"state"` // pending, delayed, dead or partial
	Reason   string            `json:"reason,omitempty"`
	File     string            `json:"file"`
	Line     uint64            `json:"line"`
	UID      uint64            `json:"uid"`
	Ingested time.Time         `json:"ingested"`
	Due      time.Time         `json:"due,omitzero"`
	Attempts uint64            `json:"attempts"`
	Size     uint64            `json:"size"`           // of the body, in bytes
	Head     map[string]string `json:"head,omitempty"` // all lines of the head, with escapes

	Body       *string `json:"body,omitempty"`
	BodyBase64 []byte  `json:"body_base64,omitempty"` // instead, if it is not UTF-8
}

// parseListed reads a message as the status tree shows it: lines of a key and a
// value, an empty line, and the body, which may be left out.
func parseListed(route, state string, text []byte) listed {
	head, _, _ := bytes.Cut(text, []byte("\n\n"))
	l := listed{Route: route, State: state, Head: map[string]string{}}
	for line := range strings.Lines(string(head)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		l.Head[key] = value
	}
	number := func(key string) uint64 {
		n, _ := strconv.ParseUint(l.Head[key], 10, 64) // or 0
		return n
	}
	instant := func(key string) time.Time {
		t, _ := time.Parse(time.RFC3339Nano, l.Head[key]) // or none
		return t
	}
	l.ID, l.File, l.Reason = unescapeValue(l.Head["id"]), unescapeValue(l.Head["file"]), unescapeValue(l.Head["reason"])
	l.Line, l.UID, l.Attempts, l.Size = number("line"), number("uid"), number("attempts"), number("size")
	l.Ingested, l.Due = instant("ingested"), instant("due")
	return l
}

// unescapeValue is the inverse of what the status tree does to values.
func unescapeValue(value string) string {
	if !strings.ContainsRune(value, '\\') {
		return value
	}
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(value, `"`, `\"`) + `"`)
	if err != nil {
		return value
	}
	return text
}

// withBody adds the body.
func (l listed) withBody(text []byte) listed {
	_, body, _ := bytes.Cut(text, []byte("\n\n"))
	if utf8.Valid(body) {
		s := string(body)
		l.Body = &s
	} else {
		l.BodyBase64 = body
	}
	return l
}

func (l *listed) matches(s *selection, now time.Time) bool {
	return strings.HasPrefix(l.Reason, s.Reason) && (s.OlderThan == 0 || now.Sub(l.Ingested) > s.OlderThan)
}

// oneLine makes what came from users fit for a line of a terminal.
func oneLine(text string) string {
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// listHeader and columns are the list for people.
const listHeader = "ID                                    STATE       AGE  TRIES       SIZE    UID  FILE                          REASON"

func (l *listed) columns(now time.Time) string {
	pad := func(s string, width int) string { // to the left; a negative width to the right
		fill := strings.Repeat(" ", max(0, max(width, -width)-utf8.RuneCountInString(s)))
		if width < 0 {
			return fill + s
		}
		return s + fill
	}
	line := pad(oneLine(l.ID), 36) + "  " + pad(l.State, 7) + "  " + pad(shortAge(now.Sub(l.Ingested)), -6) + "  " +
		pad(strconv.FormatUint(l.Attempts, 10), -5) + "  " + pad(size(l.Size), -9) + "  " + pad(strconv.FormatUint(l.UID, 10), -5) + "  " +
		pad(oneLine(cmp.Or(l.File, "-")), 28) + "  " + oneLine(cmp.Or(l.Reason, "-"))
	return line
}

// shortAge writes an age in at most five characters.
func shortAge(d time.Duration) string {
	switch d = max(0, d); {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + "d"
}
