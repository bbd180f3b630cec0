package amqp

import (
	"strings"
	"testing"
	"time"

	"spoolfs/integration/rabbit"
	"spoolfs/publisher"
	"spoolfs/queue"
)

// TestLine_LongExchangeNames: names that leave the broker no room for all its
// words, and names that are not ASCII, are known in them all the same: a missing
// one that records name delays only them, and the route waits for its own (P8).
func TestLine_LongExchangeNames(t *testing.T) {
	for name, letter := range map[string]string{"Long": "n", "NotASCII": "é"} {
		t.Run(name, func(t *testing.T) {
			own := newName(t) + strings.Repeat(letter, 90)
			missing := strings.Repeat(letter, 100)
			if name == "Long" {
				own = (own + strings.Repeat("n", 255))[:255]
				missing = strings.Repeat("m", 255)
			}
			q := rabbit.Queue{URL: node.URL(), Name: newName(t), Exchange: own}
			if err := q.Declare(t.Context()); err != nil {
				t.Fatal(err)
			}
			user := newUser(t, "^$", ".*")
			l := startLine(t, publisher.Options{Exchange: own, Allowed: []string{missing}, LazyWait: time.Hour}, Options{URL: urlOf(user, "s3cret")})
			l.append(100, func(i int, m *queue.Message) {
				if i%2 == 1 {
					m.Exchange = missing
				}
			})
			l.until("those delayed", func(s queue.Stats, p publisher.Stats) bool {
				return p.ConfirmedTotal == 50 && s.Delayed == 50
			})
			if s := l.p.Stats(); s.SessionsTotal > 2 {
				t.Errorf("each message cost a session: %+v", s)
			}
			ctl(t, "set_permissions", user, "^$", "^$", "^$")
			ctl(t, "close_all_user_connections", user, "test")
			before, err := l.route.Stats()
			if err != nil {
				t.Fatal(err)
			}
			l.append(10, nil)
			l.until("the route refused", func(s queue.Stats, p publisher.Stats) bool {
				return p.LastCause == publisher.ExchangeRefused && p.State == publisher.Waiting
			})
			if s, err := l.route.Stats(); err != nil || s.Delayed > before.Delayed {
				t.Errorf("messages to the route's own exchange are delayed: %+v, %v", s, err)
			}
		})
	}
}
