package ingest

import (
	"bytes"
	"math"
	"time"
)

// pubTimeLen is the length of YYYYMMDDHHMMSS.
const pubTimeLen = 14

// What nanoseconds since 1970 can hold, which is how the queue stores a time:
// from 1677 to 2262.
var (
	minPubTime = time.Unix(0, math.MinInt64)
	maxPubTime = time.Unix(0, math.MaxInt64)
)

// parsePubTime reads YYYYMMDD[T]HHMMSS[.fraction], in UTC. It returns false if
// text has another form, and the zero time if it has that form and is no time:
// what happened on 31 February is still to be published.
func parsePubTime(text []byte) (time.Time, bool) {
	text, fraction, dotted := bytes.Cut(text, []byte("."))
	if dotted && (len(fraction) == 0 || !areDigits(fraction)) {
		return time.Time{}, false
	}
	if len(text) == 15 && text[8] == 'T' {
		text = append(text[:8:8], text[9:]...)
	}
	if len(text) != pubTimeLen || !areDigits(text) {
		return time.Time{}, false
	}
	t, ok := calendar(text)
	if !ok {
		return time.Time{}, true
	}
	t = t.Add(nanoseconds(fraction))
	if t.Before(minPubTime) || t.After(maxPubTime) {
		return time.Time{}, true
	}
	return t, true
}

// calendar reads YYYYMMDDHHMMSS.
func calendar(digits []byte) (time.Time, bool) {
	number := func(from, to int) (n int) {
		for _, c := range digits[from:to] {
			n = 10*n + int(c-'0')
		}
		return n
	}
	year, month, day := number(0, 4), time.Month(number(4, 6)), number(6, 8)
	hour, minute, second := number(8, 10), number(10, 12), number(12, 14)
	t := time.Date(year, month, day, hour, minute, second, 0, time.UTC)
	// time.Date takes the 31st of February for a day in March.
	_, m, d := t.Date()
	return t, m == month && d == day && hour < 24 && minute < 60 && second < 60
}

func areDigits(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// nanoseconds reads the digits after the point of a number of seconds.
func nanoseconds(fraction []byte) time.Duration {
	var d time.Duration
	for i := range 9 {
		d *= 10
		if i < len(fraction) {
			d += time.Duration(fraction[i] - '0')
		}
	}
	return d
}
