package amqp

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"spoolfs/integration/rabbit"
	"spoolfs/publisher"
	"spoolfs/queue"
)

// benchBody is as long as a usual one.
var benchBody = make([]byte, 377)

// BenchmarkLine compares a line, from the queue on disk to the broker, with a
// bare client that has the same window and needs no queue, by turns in the same
// run. It reports the rate of the line and what part it is of the bare one, and
// the CPU time for a message and how many times the bare one that is; the wanted
// ratios are at least 0.95 and at most 1.3. With a delay the relay runs in this
// process, so that there is no telling whose CPU time it is.
func BenchmarkLine(b *testing.B) {
	for name, delay := range map[string]time.Duration{"direct": 0, "rtt=20ms": 10 * time.Millisecond} {
		b.Run(name, func(b *testing.B) { benchLine(b, delay) })
	}
}

// effort is what it took to publish some messages.
type effort struct{ wall, cpu float64 } // seconds

// measure measures f.
func measure(f func()) effort {
	cpu, start := cpuTime(), time.Now()
	f()
	return effort{time.Since(start).Seconds(), (cpuTime() - cpu).Seconds()}
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchLine(b *testing.B, delay time.Duration) {
	const messages, rounds, window = 20_000, 5, 1024
	url := node.URL()
	if delay > 0 {
		url = newRelayWith(b, rabbit.RelayOptions{Delay: delay}).URL()
	}
	var rates, cpus, rateRatios, cpuRatios []float64
	for b.Loop() {
		for range rounds {
			bare := benchBareOnce(b, url, messages, window)
			line := benchLineOnce(b, url, messages, window)
			rates = append(rates, messages/line.wall)
			cpus = append(cpus, line.cpu/messages*1e6)
			rateRatios = append(rateRatios, bare.wall/line.wall)
			cpuRatios = append(cpuRatios, line.cpu/bare.cpu)
		}
	}
	b.ReportMetric(median(rates), "msg/s")
	b.ReportMetric(median(rateRatios), "rate/bare")
	if delay == 0 {
		b.ReportMetric(median(cpus), "cpu-µs/msg")
		b.ReportMetric(median(cpuRatios), "cpu/bare")
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func benchLineOnce(b *testing.B, url string, messages, window int) effort {
	q := benchQueue(b)
	l := newLine(b, publisher.Options{Exchange: q.Exchange, Window: window}, Options{URL: url})
	for range messages / 1000 {
		l.append(1000, func(_ int, m *queue.Message) {
			m.Body, m.ContentType = benchBody, "application/json"
		})
	}
	e := measure(func() {
		l.start()
		// Seldom, since it costs CPU time.
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for l.p.Stats().ConfirmedTotal < uint64(messages) {
			<-tick.C
		}
	})
	l.halt()
	return e
}

// benchBareOnce is the least that a careful client does: messages with an id,
// confirms, a window.
func benchBareOnce(b *testing.B, url string, messages, window int) effort {
	q := benchQueue(b)
	return measure(func() {
		conn, err := amqp091.Dial(url)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		ch, err := conn.Channel()
		if err != nil {
			b.Fatal(err)
		}
		if err := ch.Confirm(false); err != nil {
			b.Fatal(err)
		}
		confirms := ch.NotifyPublish(make(chan amqp091.Confirmation, window))
		ids := queue.NewFileID()
		for sent := range messages {
			if sent >= window {
				<-confirms
			}
			if err := ch.Publish(q.Exchange, "v03.a", true, false, amqp091.Publishing{
				DeliveryMode: amqp091.Persistent, ContentType: "application/json",
				MessageId: string(ids.MessageID(uint32(sent + 1))), Body: benchBody,
			}); err != nil {
				b.Fatal(err)
			}
		}
		for range window {
			<-confirms
		}
	})
}
