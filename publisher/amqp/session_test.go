package amqp

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"spoolfs/integration/rabbit"

	"spoolfs/publisher"
	"spoolfs/queue"
)

// Guarantee 2.
func TestSession_AllConfirmedInOrder(t *testing.T) {
	q := declareQueue(t, nil)
	s := dial(t, Options{Exchanges: []string{q.Exchange}})
	const count = 10_000
	verdicts := publishAll(t, s, count, 1024, func(tag uint64) publisher.Publication {
		return publication(q.Exchange, tag)
	})
	for i, got := range verdicts {
		want := publisher.Verdict{Tag: uint64(i + 1), Outcome: publisher.Confirmed}
		if got != want {
			t.Fatalf("verdict %d: got %+v, want %+v", i, got, want)
		}
	}
	for i, d := range consume(t, q, count) {
		if want := fmt.Sprintf("id-%d", i+1); d.MessageID != want {
			t.Fatalf("message %d: got id %q, want %q", i, d.MessageID, want)
		}
	}
	closeSession(t, s)
}

func TestSession_WhatAConsumerSees(t *testing.T) {
	q := declareQueue(t, nil)
	s := dial(t, Options{})
	messages := []*queue.Message{
		{ID: "1", ContentType: "application/json", ContentEncoding: "utf-8", Body: []byte("body")},
		{ID: "2", Headers: []queue.Header{}},
		{ID: "3", Headers: []queue.Header{{Name: "sum", Value: "d,\xff\x00"}, {Name: "", Value: ""}}},
	}
	for i, m := range messages {
		publish(t, s, publisher.Publication{Tag: uint64(i), Exchange: q.Exchange, Key: "a..b\xff", Message: m})
	}
	got := consume(t, q, len(messages))

	for i, m := range messages {
		d := got[i]
		if d.MessageID != string(m.ID) || d.ContentType != m.ContentType || d.ContentEncoding != m.ContentEncoding ||
			string(d.Body) != string(m.Body) || d.Key != "a..b\xff" || d.Exchange != q.Exchange || d.DeliveryMode != 2 {
			t.Errorf("got %+v, want %+v", d, m)
		}
	}
	if h := got[0].Headers; h != nil {
		t.Errorf("nil headers: got %v, want no table", h)
	}
	// The library cannot send an empty table. When it can, this fails, and
	// the comment on Publish is to be changed.
	if h := got[1].Headers; h != nil {
		t.Errorf("empty headers: got %#v, want no table", h)
	}
	if h := got[2].Headers; len(h) != 2 || h["sum"] != "d,\xff\x00" || h[""] != "" {
		t.Errorf("headers: got %#v", h)
	}
}

// Guarantee 3. The confirms of the returned come at another time than those of
// the others, which wait for the disk.
func TestSession_Returned(t *testing.T) {
	q := declareQueue(t, nil)
	nowhere := newName(t)
	s := dial(t, Options{Exchanges: []string{nowhere}})
	verdicts := publishAll(t, s, 3000, 300, func(tag uint64) publisher.Publication {
		if tag%3 == 0 {
			return publication(q.Exchange, tag)
		}
		return publication(nowhere, tag)
	})
	for i, got := range verdicts {
		want := publisher.Verdict{Tag: uint64(i + 1), Outcome: publisher.Confirmed}
		if want.Tag%3 != 0 {
			want.Returned, want.Reason = true, "312 NO_ROUTE"
		}
		if got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
	if depth, err := q.Depth(t.Context()); err != nil || depth != 1000 {
		t.Errorf("got depth %d, error %v", depth, err)
	}
}

// Guarantee 3, when returns and confirms come in one piece. With a buffer for
// returns a confirm overtakes them.
func TestSession_ReturnedInABurst(t *testing.T) {
	const burst = 100
	q := declareQueue(t, nil)
	nowhere := newName(t)
	r := newRelay(t)
	s := dial(t, Options{URL: r.URL(), Exchanges: []string{nowhere}})
	for round := range 20 {
		r.Down.Lock()
		for tag := range uint64(burst) {
			publish(t, s, publication(nowhere, tag))
		}
		// When this one has arrived the broker has answered those before.
		publish(t, s, publication(q.Exchange, burst))
		wait(t, "the last message", func() bool {
			depth, err := q.Depth(t.Context())
			return err == nil && depth == round+1
		})
		r.Down.Unlock()
		for tag := range uint64(burst) {
			if got := nextVerdict(t, s); got.Tag != tag || !got.Returned {
				t.Fatalf("round %d, tag %d: got %+v", round, tag, got)
			}
		}
		if got := nextVerdict(t, s); got.Tag != burst || got.Returned {
			t.Fatalf("round %d, the last: got %+v", round, got)
		}
	}
}

// Guarantee 1: a refused message is never reported as confirmed. With the
// library's own listener most of these are.
func TestSession_RejectedAmongConfirmed(t *testing.T) {
	const limit = 5
	full := declareQueue(t, map[string]any{"x-max-length": int32(limit), "x-overflow": "reject-publish"})
	slow := declareQueue(t, nil)
	s := dial(t, Options{})
	verdicts := publishAll(t, s, 1500, 200, func(tag uint64) publisher.Publication {
		if tag%3 == 0 {
			return publication(full.Exchange, tag)
		}
		return publication(slow.Exchange, tag)
	})

	var rejected int
	confirmed := make(map[string]bool)
	for i, v := range verdicts {
		switch {
		case v.Tag != uint64(i+1):
			t.Fatalf("verdict %d: got tag %d", i, v.Tag)
		case v.Outcome == publisher.Confirmed:
			confirmed[fmt.Sprintf("id-%d", v.Tag)] = true
		case v.Tag%3 != 0:
			t.Fatalf("got %+v for the queue without a limit", v)
		default:
			rejected++
		}
	}
	arrived := idsOf(drain(t, full), drain(t, slow))
	wantArrived(t, confirmed, arrived)
	if len(arrived) != len(confirmed) || rejected < 500-2*limit {
		t.Errorf("got %d confirmed, %d arrived, %d rejected", len(confirmed), len(arrived), rejected)
	}
}

func idsOf(batches ...[]rabbit.Delivery) map[string]bool {
	ids := make(map[string]bool)
	for _, batch := range batches {
		for _, d := range batch {
			ids[d.MessageID] = true
		}
	}
	return ids
}

func wantArrived(tb testing.TB, confirmed, arrived map[string]bool) {
	tb.Helper()
	for id := range confirmed {
		if !arrived[id] {
			tb.Fatalf("%s was confirmed and is not in the queue", id)
		}
	}
}

// Guarantee 1, when the broker goes away while we publish.
func TestSession_BrokerEnds(t *testing.T) {
	t.Run("Stop", func(t *testing.T) {
		err := testBrokerEnds(t, func() error { return node.Stop(t.Context()) })
		// Mostly CONNECTION_FORCED, but a write may meet the reset first.
		if err == nil || faultIn(err).Class != publisher.Retriable {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("Kill", func(t *testing.T) {
		if err := testBrokerEnds(t, node.Kill); err == nil {
			t.Error("got no error")
		}
	})
}

// testBrokerEnds returns the session's error.
func testBrokerEnds(t *testing.T, end func() error) error {
	const enough = 3000
	q := declareQueue(t, nil)
	s := dial(t, Options{Exchanges: []string{q.Exchange}})
	ended := make(chan error, 1)
	confirmed := make(map[string]bool)
	take := func(v publisher.Verdict) {
		if v.Outcome != publisher.Confirmed || v.Returned {
			t.Errorf("got %+v", v)
		}
		confirmed[fmt.Sprintf("id-%d", v.Tag)] = true
		if len(confirmed) == enough {
			go func() { ended <- end() }()
		}
	}
	published := publishUntilEnd(s, q.Exchange, take)
	for _, v := range remaining(t, s) {
		take(v)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := node.Start(t.Context()); err != nil {
		t.Fatal(err)
	}

	arrived := idsOf(drain(t, q))
	wantArrived(t, confirmed, arrived)
	t.Logf("published %d, confirmed %d, arrived %d: %v", published, len(confirmed), len(arrived), s.Err())
	if err := send(s, publication(q.Exchange, math.MaxUint64)); err == nil {
		t.Error("Publish on a session that has ended: got no error")
	}
	err := s.Err()
	if cerr := s.Close(); cerr != nil || s.Err() != err {
		t.Errorf("Close: got error %v, then Err %v, want %v", cerr, s.Err(), err)
	}
	return err
}

// publishUntilEnd publishes with 512 in flight until the session ends.
func publishUntilEnd(s *Session, exchange string, take func(publisher.Verdict)) (published uint64) {
	for seen := uint64(0); ; {
		if published-seen == 512 {
			v, ok := <-s.Verdicts()
			if !ok {
				return published
			}
			take(v)
			seen++
			continue
		}
		if send(s, publication(exchange, published+1)) != nil {
			return published
		}
		published++
	}
}

// Guarantee 4.
func TestSession_InvalidMessage(t *testing.T) {
	q := declareQueue(t, nil)
	s := dial(t, Options{})
	long := strings.Repeat("x", 256)
	wrong := publication(q.Exchange, 1)
	wrong.Key = long

	publish(t, s, publication(q.Exchange, 2))
	err := s.Publish(wrong)
	var invalid *publisher.InvalidError
	if !errors.As(err, &invalid) || !strings.HasPrefix(invalid.Reason, "routing-key-too-long: ") {
		t.Fatalf("got error %v", err)
	}
	publish(t, s, publication(q.Exchange, 3))

	for _, want := range []uint64{2, 3} {
		if got := nextVerdict(t, s); got.Tag != want || got.Outcome != publisher.Confirmed {
			t.Errorf("got %+v, want tag %d", got, want)
		}
	}
	if got := idsOf(consume(t, q, 2)); !got["id-2"] || !got["id-3"] {
		t.Errorf("got messages %v", got)
	}
	closeSession(t, s)
}

// The largest header table that passes our check passes the broker's, whatever is in
// it, and with the longest of all properties.
func TestSession_LargestHeaders(t *testing.T) {
	q := declareQueue(t, nil)
	s := dial(t, Options{})
	longest := strings.Repeat("p", maxShort)
	p := publication(q.Exchange, 1)
	p.Message.ID, p.Message.ContentType, p.Message.ContentEncoding = queue.ID(longest), longest, longest
	for _, name := range []string{"correlation_id", "reply_to", "type", "app_id"} {
		p.Message.Properties = append(p.Message.Properties, queue.Property{Name: name, Value: longest})
	}
	p.Message.Properties = append(p.Message.Properties,
		queue.Property{Name: "expiration", Value: "4294967295"}, queue.Property{Name: "priority", Value: "9"},
		queue.Property{Name: "timestamp", Value: "253402300799"})
	values := "[" + strings.Repeat(`1, 0.5, true, null, "text", [false], {"a": {"b": [-1]}}, `, 1000) + "2]"
	p.Message.Headers = []queue.Header{{Name: "a", Value: values, JSON: true}}
	array, err := headerValue(p.Message.Headers[0])
	if err != nil {
		t.Fatal(err)
	}
	rest := s.frameSize - frameOverhead - headerOverhead - tableSize(amqp091.Table{"a": array, "n": ""})
	p.Message.Headers = append(p.Message.Headers, queue.Header{Name: "n", Value: strings.Repeat("v", rest)})
	publish(t, s, p)
	if got := nextVerdict(t, s); got.Outcome != publisher.Confirmed {
		t.Errorf("got %+v", got)
	}
	d := consume(t, q, 1)[0]
	if !reflect.DeepEqual(d.Headers["a"], array) || d.Headers["n"] != p.Message.Headers[1].Value {
		t.Error("the headers have changed")
	}
	if d.AppID != longest || d.CorrelationID != longest || d.ReplyTo != longest || d.Type != longest || d.Priority != 9 ||
		d.Expiration != "4294967295" || d.Timestamp.Unix() != 253402300799 {
		t.Error("the properties have changed")
	}

	p.Message.Headers[1].Value += "v"
	var invalid *publisher.InvalidError
	if err := s.Publish(p); !errors.As(err, &invalid) || !strings.HasPrefix(invalid.Reason, "headers-too-long: ") {
		t.Errorf("one byte more: got error %v", err)
	}
}

func TestSession_MissingExchange(t *testing.T) {
	q := declareQueue(t, nil)
	s := dial(t, Options{})
	publish(t, s, publication(q.Exchange, 1))
	if got := nextVerdict(t, s); got.Outcome != publisher.Confirmed {
		t.Errorf("got %+v", got)
	}
	publish(t, s, publication(newName(t), 2))
	if got := remaining(t, s); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	wantErr(t, s.Err(), publisher.Lazy, "404")
}

func wantErr(tb testing.TB, err error, class publisher.Class, text string) {
	tb.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		tb.Errorf("got error %v, want one with %q", err, text)
	}
	if got := faultIn(err).Class; got != class {
		tb.Errorf("%v: got class %d, want %d", err, got, class)
	}
}

// wantCause is for what the status tells apart.
func wantCause(tb testing.TB, err error, cause publisher.Cause) {
	tb.Helper()
	if got := faultIn(err).Cause; got != cause {
		tb.Errorf("%v: got cause %q, want %q", err, got, cause)
	}
}

// faultIn is the fault in err; without one it is retriable.
func faultIn(err error) *publisher.Fault {
	f := &publisher.Fault{}
	errors.As(err, &f)
	return f
}

// The broker ends the session of a message that is larger than it takes.
func TestSession_MessageTooLarge(t *testing.T) {
	q := declareQueue(t, nil)
	setMaxMessageSize(t, "1000")
	t.Cleanup(func() { setMaxMessageSize(t, "134217728") })
	s := dial(t, Options{})
	p := publication(q.Exchange, 1)
	p.Message.Body = make([]byte, 1001)
	publish(t, s, p)
	if got := remaining(t, s); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	wantErr(t, s.Err(), publisher.Invalid, "406")
}

func setMaxMessageSize(tb testing.TB, size string) {
	tb.Helper()
	ctl(tb, "eval", "persistent_term:put(max_message_size, "+size+"), application:set_env(rabbit, max_message_size, "+size+").")
}

func TestSession_Blocked(t *testing.T) {
	q := declareQueue(t, nil)
	s := dial(t, Options{})
	if got := s.Blocked(); got != "" {
		t.Fatalf("got %q", got)
	}
	unblock := func() { ctl(t, "set_vm_memory_high_watermark", "0.4") }
	t.Cleanup(unblock)
	ctl(t, "set_vm_memory_high_watermark", "0.00001")

	publish(t, s, publication(q.Exchange, 1)) // the broker tells those who publish
	wait(t, "the alarm", func() bool { return s.Blocked() == "low on memory" })
	closeWhileBlocked(t, q)
	unblock()
	wait(t, "the end of the alarm", func() bool { return s.Blocked() == "" })
	if got := nextVerdict(t, s); got.Tag != 1 || got.Outcome != publisher.Confirmed {
		t.Errorf("got %+v", got)
	}
	closeSession(t, s)
}

// A broker that reads nothing does not answer a goodbye.
func closeWhileBlocked(t *testing.T, q rabbit.Queue) {
	s := dial(t, Options{CloseTimeout: time.Minute})
	publish(t, s, publication(q.Exchange, 2))
	wait(t, "the alarm", func() bool { return s.Blocked() != "" })
	start := time.Now()
	s.Close()
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("Close took %v", took)
	}
}

// Guarantee 6: verdicts that nobody reads do not keep a session from ending.
func TestSession_CloseWithoutReader(t *testing.T) {
	q := declareQueue(t, nil)
	nowhere := newName(t)
	s := dial(t, Options{Exchanges: []string{nowhere}, Window: 16, CloseTimeout: time.Minute})
	for tag := uint64(1); tag <= 5000; tag++ {
		exchange := q.Exchange
		if tag%5 == 0 {
			exchange = nowhere
		}
		publish(t, s, publication(exchange, tag))
	}
	wait(t, "messages", func() bool {
		depth, err := q.Depth(t.Context())
		return err == nil && depth == 4000
	})
	start := time.Now()
	closeSession(t, s)
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("Close took %v", took)
	}
	for i, v := range remaining(t, s) {
		if v.Tag != uint64(i+1) || v.Outcome != publisher.Confirmed || v.Returned != (v.Tag%5 == 0) {
			t.Fatalf("verdict %d: got %+v", i, v)
		}
	}
}

// Verdicts that nobody reads stay where they are, also when their session ends
// by itself.
func TestSession_SlowReader(t *testing.T) {
	q := declareQueue(t, nil)
	r := newRelay(t)
	s := dial(t, Options{URL: r.URL(), Window: 1})
	for tag := uint64(1); tag <= 100; tag++ {
		publish(t, s, publication(q.Exchange, tag))
	}
	wait(t, "messages", func() bool {
		depth, err := q.Depth(t.Context())
		return err == nil && depth == 100
	})
	first := nextVerdict(t, s)
	r.Cut()
	wait(t, "the end", func() bool { return s.Err() != nil })
	got := append([]publisher.Verdict{first}, remaining(t, s)...)
	for i, v := range got {
		if v.Tag != uint64(i+1) || v.Outcome != publisher.Confirmed {
			t.Fatalf("verdict %d: got %+v", i, v)
		}
	}
	t.Logf("%d verdicts", len(got))
}

// Guarantee 1: what the broker confirmed, but we have not heard, is unknown.
// The library reports it as refused.
func TestSession_UnheardConfirmsAreUnknown(t *testing.T) {
	q := declareQueue(t, nil)
	r := newRelay(t)
	s := dial(t, Options{URL: r.URL()})
	publish(t, s, publication(q.Exchange, 1))
	if got := nextVerdict(t, s); got.Tag != 1 || got.Outcome != publisher.Confirmed {
		t.Errorf("got %+v", got)
	}

	r.Down.Lock()
	for tag := uint64(2); tag <= 200; tag++ {
		publish(t, s, publication(q.Exchange, tag))
	}
	wait(t, "messages", func() bool {
		depth, err := q.Depth(t.Context())
		return err == nil && depth == 200
	})
	r.Cut()
	r.Down.Unlock()
	if got := remaining(t, s); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	wantErr(t, s.Err(), publisher.Retriable, "ended")
}

// Guarantee 5.
func TestSession_BlackHole(t *testing.T) {
	t.Run("Write", func(t *testing.T) {
		q := declareQueue(t, nil)
		r := newRelay(t)
		s := dial(t, Options{URL: r.URL(), WriteTimeout: 200 * time.Millisecond})
		r.Up.Lock()
		t.Cleanup(func() {
			r.Cut() // else it would carry a hundred megabytes to the broker first
			r.Up.Unlock()
		})
		var err error
		for tag := uint64(1); err == nil; tag++ {
			p := publication(q.Exchange, tag)
			p.Message.Body = make([]byte, 1<<20)
			err = send(s, p)
		}
		remaining(t, s)
		wantErr(t, s.Err(), publisher.Retriable, "i/o timeout")
	})
	t.Run("Heartbeat", func(t *testing.T) {
		r := newRelay(t)
		s := dial(t, Options{URL: r.URL(), Heartbeat: time.Second})
		r.Down.Lock()
		t.Cleanup(r.Down.Unlock)
		start := time.Now()
		remaining(t, s)
		t.Logf("ended after %v", time.Since(start))
		wantErr(t, s.Err(), publisher.Retriable, "i/o timeout")
	})
	// Guarantee 6: nobody answers, and a Publish hangs.
	t.Run("Close", func(t *testing.T) {
		q := declareQueue(t, nil)
		r := newRelay(t)
		s := dial(t, Options{URL: r.URL(), CloseTimeout: 200 * time.Millisecond})
		r.Up.Lock()
		t.Cleanup(func() {
			r.Cut()
			r.Up.Unlock()
		})
		failed := make(chan error)
		go func() {
			var err error
			for tag := uint64(1); err == nil; tag++ {
				p := publication(q.Exchange, tag)
				p.Message.Body = make([]byte, 1<<20)
				err = send(s, p)
			}
			failed <- err
		}()
		start := time.Now()
		if err := s.Close(); err == nil {
			t.Error("Close: got no error")
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("Close took %v", took)
		}
		<-failed
		if err := s.Err(); err != nil {
			t.Errorf("Err after Close: %v", err)
		}
	})
}
