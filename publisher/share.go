package publisher

import "time"

// firstShare is how many messages may be in flight on a new session. It doubles with
// each round trip: 1024 are there after six.
const firstShare = 16

// share is how many messages may be in flight so that their verdicts come in time. A
// broker shares itself between all its publishers: a thousand that each had a window of
// 1,024 unconfirmed at one that confirms 10,000 a second would wait 100 s for a verdict,
// have all given up after ConfirmTimeout, and send the same again and again.
//
// So it begins low with each session, as all nodes come back after an outage; grows by
// one with each verdict that is prompt; and halves with one that is not, once in the
// time that a verdict takes. A session that ended with messages unanswered leaves half of
// it to the next one.
type share struct {
	most   int
	prompt time.Duration // how long a verdict may take
	n      int
	halved time.Time
}

func newShare(most int, confirm time.Duration) share {
	return share{most: most, prompt: confirm / 6, n: min(most, firstShare)}
}

// answered takes note of the verdicts of what was published at those times.
func (s *share) answered(now time.Time, published []time.Time) {
	for _, at := range published {
		switch {
		case !at.After(s.halved): // has the share that there was before
		case now.Sub(at) <= s.prompt:
			s.n = min(s.most, s.n+1)
		default:
			s.n, s.halved = max(1, s.n/2), now
		}
	}
}

// restart begins a session; unanswered is how many messages the last one left.
func (s *share) restart(unanswered int) {
	if unanswered > 0 {
		s.n = max(1, s.n/2)
	}
	s.n = min(s.n, s.most, firstShare)
}

// reconfigure changes the bounds.
func (s *share) reconfigure(most int, confirm time.Duration) {
	if s.n == s.most || s.n > most {
		s.n = most
	}
	s.most, s.prompt = most, confirm/6
}
