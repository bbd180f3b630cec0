package publisher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path"
	"slices"
	"time"
	"unicode/utf8"

	"spoolfs/queue"
)

// Options of a Publisher.
type Options struct {
	// Route is where the messages come from. Required.
	Route *queue.Route

	// Dial opens a session. It is called when there is something to send and
	// ends when its context does. Required.
	Dial func(context.Context) (Session, error)

	// Exchange takes the messages that name none themselves. At most 255 bytes.
	Exchange string

	// Split, if it is not 0, is over how many exchanges these messages are
	// spread: those whose names are Exchange and two digits. SplitCode is
	// asked, and what it returns, modulo Split, is the number.
	Split     int
	SplitCode func(*queue.Message) int

	// Allowed are the exchanges besides Exchange that a record may name: names,
	// or patterns as in path.Match. A message that names another one is delayed.
	Allowed []string

	// TopicPrefix goes before the words of the routing key. At most 255 bytes.
	TopicPrefix string

	// Topic, if it is set, is the routing key of the messages that have none
	// of their own. At most 255 bytes.
	Topic string

	// Window is how many messages may be in flight. Default 1024.
	Window int

	// Workers is how many sessions the route has, at most 64. Default 1. Messages
	// that go over several are not in order: see workers.go.
	Workers int

	// WindowBytes is after how many bytes of bodies and headers in flight no more are
	// leased, as they are in memory until their verdict. What has been leased by
	// then is sent all the same. Default 64 MiB.
	WindowBytes int

	// Rate bounds the messages a second. After an outage it begins with a tenth
	// of it and takes RateRamp to get back. Defaults: no bound, 30 s.
	Rate     float64
	RateRamp time.Duration

	// TTL is how old a message may get since it was stored, and RetryTTL since
	// the time at which its record says that it was first published. 0 is for
	// ever. What is older is a dead letter, or gone if DropExpired is set.
	TTL, RetryTTL time.Duration
	DropExpired   bool

	// Then gets each message once it is confirmed, and Else what has failed for
	// good, instead of the dead letters. Both change places with the message in
	// one batch, and keep the time at which it was stored. Default none.
	Then []Follower
	Else *Follower

	// Returned says what becomes of messages for which no queue is bound.
	// Default ReturnedCount.
	Returned Returned

	// RetryMin and RetryMax bound the waits between attempts. Defaults 250 ms
	// and 30 s.
	RetryMin, RetryMax time.Duration

	// MaxAttempts is after how many attempts that the broker has refused a message
	// has failed for good: one more than retries. What is lost with a session, or
	// waits for a broker that is away, does not count. Default 0, no bound.
	MaxAttempts int

	// LazyWait is how long the route waits when trying again is of no use
	// before somebody has changed a configuration; half of it is random.
	// Default 30 s. A message that names something of that kind itself waits
	// twice as long each time, up to LazyMax. Default 10 min.
	LazyWait, LazyMax time.Duration

	// ConfirmTimeout is how long the oldest message in flight may lack a
	// verdict before the session is replaced. Default 30 s. While the broker
	// blocks publishers it does not count, but the session is replaced after
	// BlockedTimeout. Default 10 min.
	ConfirmTimeout, BlockedTimeout time.Duration

	// IdleTimeout is how long a session without anything to send is kept.
	// Default 1 min.
	IdleTimeout time.Duration

	// StopTimeout is how long Run waits for verdicts when it is told to stop.
	// Default 5 s.
	StopTimeout time.Duration

	// Logger takes changes of state. Default slog.Default.
	Logger *slog.Logger

	// Jitter draws a wait between 0 and its argument. Default math/rand/v2.
	Jitter func(time.Duration) time.Duration
}

func (o *Options) ensureDefaults() {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.RetryMin, 250 * time.Millisecond},
		{&o.RetryMax, 30 * time.Second},
		{&o.LazyWait, 30 * time.Second},
		{&o.LazyMax, 10 * time.Minute},
		{&o.RateRamp, 30 * time.Second},
		{&o.ConfirmTimeout, 30 * time.Second},
		{&o.BlockedTimeout, 10 * time.Minute},
		{&o.IdleTimeout, time.Minute},
		{&o.StopTimeout, 5 * time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.Workers == 0 {
		o.Workers = 1
	}
	if o.Window == 0 {
		o.Window = 1024
	}
	if o.WindowBytes == 0 {
		o.WindowBytes = 64 << 20
	}
	if o.Returned == "" {
		o.Returned = ReturnedCount
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Jitter == nil {
		o.Jitter = func(d time.Duration) time.Duration { return rand.N(d + 1) }
	}
}

// MaxSplit is the largest number of exchanges that two digits can tell apart.
const MaxSplit = 100

func (o *Options) validate() error {
	switch {
	case o.Route == nil:
		return errors.New("publisher needs a route")
	case o.Dial == nil:
		return errors.New("publisher needs a way to dial")
	case o.Split < 0 || o.Split > MaxSplit || o.Split > 0 && o.SplitCode == nil:
		return fmt.Errorf("%d exchanges to split over: at most %d, and a code is needed", o.Split, MaxSplit)
	case o.Window < 0 || o.WindowBytes < 0:
		return fmt.Errorf("window of %d messages and %d bytes", o.Window, o.WindowBytes)
	case o.MaxAttempts < 0:
		return fmt.Errorf("at most %d attempts", o.MaxAttempts)
	case o.Rate < 0:
		return fmt.Errorf("rate of %g messages a second", o.Rate)
	case o.TTL < 0 || o.RetryTTL < 0:
		return fmt.Errorf("messages that expire after %s and %s", o.TTL, o.RetryTTL)
	case !slices.Contains([]Returned{ReturnedCount, ReturnedRetry, ReturnedDead}, o.Returned):
		return fmt.Errorf("unknown policy %q for returned messages", o.Returned)
	}
	if err := errors.Join(o.validateFollowers(), o.validateWorkers()); err != nil {
		return err
	}
	for _, pattern := range o.Allowed {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("pattern %q of exchanges: %w", pattern, err)
		}
	}
	for what, s := range map[string]string{"exchange": o.Exchange, "topic prefix": o.TopicPrefix, "topic": o.Topic} {
		if len(s) > maxShortString {
			return fmt.Errorf("%s has %d bytes, AMQP takes %d", what, len(s), maxShortString)
		}
		if !utf8.ValidString(s) {
			return fmt.Errorf("%s %q is not UTF-8", what, s)
		}
	}
	return nil
}
