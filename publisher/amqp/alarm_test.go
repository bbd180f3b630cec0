package amqp

import (
	"os"
	"testing"
	"time"

	"spoolfs/publisher"
	"spoolfs/queue"
)

// TestLine_MemoryAlarmLarge: a message that the alarm meets half way waits for
// its end like all others, though the broker reads nothing and the network is
// full (B3). With SPOOLFS_CHAOS that lasts longer than three heartbeats.
func TestLine_MemoryAlarmLarge(t *testing.T) {
	t.Cleanup(func() { ctl(t, "set_vm_memory_high_watermark", "0.4") })
	const write = 3 * time.Second
	alarm := write + time.Second
	if os.Getenv("SPOOLFS_CHAOS") != "" {
		alarm = 40 * time.Second
	}
	q := declareQueue(t, nil)
	l := startLine(t, publisher.Options{Exchange: q.Exchange}, Options{URL: node.URL(), WriteTimeout: write})
	l.append(10, nil)
	l.untilEmpty()
	ctl(t, "set_vm_memory_high_watermark", "0.00001")
	l.append(4, func(_ int, m *queue.Message) { m.Body = make([]byte, 8<<20) })
	blocked := time.Now()
	l.until("blocked for longer than a write may take", func(_ queue.Stats, p publisher.Stats) bool {
		if p.State != publisher.Blocked && p.FailuresTotal == 0 {
			blocked = time.Now()
		}
		return time.Since(blocked) > alarm
	})
	ctl(t, "set_vm_memory_high_watermark", "0.4")
	l.untilEmpty()
	if s := l.p.Stats(); s.FailuresTotal > 0 {
		t.Errorf("the session was replaced: %+v", s)
	}
	l.checkArrived(q, 0)
}
