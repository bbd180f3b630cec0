package main

import "time"

// sample is what a daemon said at a moment, or why it said nothing.
type sample struct {
	at     time.Time
	status *status // nil: no answer
	err    string
}

// history is the samples of the last minutes, the oldest first.
type history []sample

// maxSamples bounds a history: half an hour at a sample a second.
const maxSamples = 1800

func (h history) with(s sample) history {
	h = append(h, s)
	return h[max(0, len(h)-maxSamples):]
}

// last is the last sample with an answer.
func (h history) last() (sample, bool) {
	for i := len(h) - 1; i >= 0; i-- {
		if h[i].status != nil {
			return h[i], true
		}
	}
	return sample{}, false
}

// total is a number of a status that only grows while the daemon lives.
type total func(*status) uint64

func ingested(s *status) uint64  { return s.FS.IngestedMessagesTotal + s.Janitor.MessagesTotal }
func confirmed(s *status) uint64 { return s.Publisher.ConfirmedTotal }

// waiting is what is still to be sent.
func waiting(s *status) uint64 { return s.Queue.Ready + s.Queue.Leased + s.Queue.Delayed }

// rate is how much a total has grown a second between two times, as far as they
// are within what is known; ok is false if they are not. Between samples it is
// taken to grow evenly. A daemon that was restarted meanwhile began at 0.
func (h history) rate(of total, from, to time.Time) (perSecond float64, ok bool) {
	var grown float64
	var known time.Duration
	var last *sample
	for i := range h {
		s := &h[i]
		if s.status == nil {
			continue
		}
		if last != nil {
			now, before := of(s.status), of(last.status)
			if now < before {
				before = 0
			}
			if both := overlap(last.at, s.at, from, to); both > 0 {
				known += both
				grown += float64(now-before) * both.Seconds() / s.at.Sub(last.at).Seconds()
			}
		}
		last = s
	}
	if known == 0 {
		return 0, false
	}
	return grown / known.Seconds(), true
}

// overlap is the time that two intervals have in common; not more than 0 if none.
func overlap(from, to, from2, to2 time.Time) time.Duration {
	if from2.After(from) {
		from = from2
	}
	if to2.Before(to) {
		to = to2
	}
	return to.Sub(from)
}

// noValue stands for a time without an answer in a series.
const noValue = -1

// series divides the time up to end into n steps and gives a value for each, or
// noValue.
func (h history) series(end time.Time, n int, step time.Duration, value func(from, to time.Time) (float64, bool)) []float64 {
	all := make([]float64, n)
	for i := range all {
		to := end.Add(-time.Duration(n-1-i) * step)
		v, ok := value(to.Add(-step), to)
		if !ok {
			v = noValue
		}
		all[i] = v
	}
	return all
}

// rates is the series of the rates of a total. While nobody answers there is none.
func (h history) rates(of total, end time.Time, n int, step time.Duration) []float64 {
	return h.series(end, n, step, func(from, to time.Time) (float64, bool) {
		if h.isSilent(from, to) {
			return 0, false
		}
		return h.rate(of, from, to)
	})
}

// isSilent reports whether nobody has answered in a time in which somebody asked.
func (h history) isSilent(from, to time.Time) bool {
	silent := false
	for i := range h {
		if s := &h[i]; s.at.After(from) && !s.at.After(to) {
			if s.status != nil {
				return false
			}
			silent = true
		}
	}
	return silent
}

// highest is the series of the highest values of a number.
func (h history) highest(of total, end time.Time, n int, step time.Duration) []float64 {
	return h.series(end, n, step, func(from, to time.Time) (high float64, ok bool) {
		for i := range h {
			if s := &h[i]; s.status != nil && s.at.After(from) && !s.at.After(to) {
				high, ok = max(high, float64(of(s.status))), true
			}
		}
		return high, ok
	})
}

// growth is how fast the stored bytes grow, a second; negative while they shrink.
func (h history) growth(from, to time.Time) (perSecond float64, ok bool) {
	var first, last *sample
	for i := range h {
		if s := &h[i]; s.status != nil && !s.at.Before(from) && !s.at.After(to) {
			if first == nil {
				first = s
			}
			last = s
		}
	}
	if first == last {
		return 0, false
	}
	return (float64(last.status.Queue.Bytes) - float64(first.status.Queue.Bytes)) / last.at.Sub(first.at).Seconds(), true
}
