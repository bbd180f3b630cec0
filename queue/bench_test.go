package queue

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// corpusFile has 2,000 small records, one a line.
const corpusFile = "../fs/ingest/testdata/corpus/70-many-small/post_retry.node1.4242"

// corpusBodies returns the lines of corpusFile.
func corpusBodies(t testing.TB) [][]byte {
	t.Helper()
	text, err := os.ReadFile(corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	var bodies [][]byte
	for len(text) > 0 {
		n := 0
		for text[n] != '\n' {
			n++
		}
		bodies = append(bodies, text[:n+1])
		text = text[n+1:]
	}
	return bodies
}

func corpusMessage(f FileID, body []byte) Message {
	return Message{
		ID: f.MessageID(1), Line: 1, Ingested: time.Now(), File: "post_retry.node1.4242", UID: 1000,
		Words: []string{"run", "001"}, ContentType: "application/json", ContentEncoding: "utf-8", Body: body,
	}
}

// BenchmarkStage measures a file's way into the queue, Put and Commit, with many
// writers, against bare synced Pebble puts of the same bytes. The two take turns
// in short rounds, so that the ratio holds on a machine whose speed drifts.
func BenchmarkStage(b *testing.B) {
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			bodies := corpusBodies(b)
			_, r := openQueue(b, Options{})
			stage := func(i int) error { return stageOne(r, bodies[i%len(bodies)]) }
			against(b, writers, stage, bareDB(b, r))
		})
	}
}

// bareDB returns a function that puts the record of a message into a database
// of its own, synced.
func bareDB(b *testing.B, r *Route) func(i int) error {
	b.Helper()
	bodies := corpusBodies(b)
	dir, e := filepath.Join(b.TempDir(), "bare"), &engine{failed: make(chan struct{})}
	fs, err := newEngineFS(r.q.opts.FS, dir, e)
	if err != nil {
		b.Fatal(err)
	}
	db, err := pebble.Open(dir, e.pebbleOptions(fs, &r.q.opts))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return func(i int) error {
		f := NewFileID()
		m := corpusMessage(f, bodies[i%len(bodies)])
		return db.Set(f[:], encodeRecord(&m), pebble.Sync)
	}
}

// against runs ours and the floor in turns and reports their ratio.
func against(b *testing.B, writers int, ours, floor func(i int) error) {
	b.Helper()
	var took [2]time.Duration
	n := 0
	for b.Loop() {
		round := 32 * max(writers, 8)
		took[0] += spread(b, writers, round, ours)
		took[1] += spread(b, writers, round, floor)
		n += round
	}
	b.ReportMetric(float64(n)/took[0].Seconds(), "ours/s")
	b.ReportMetric(float64(n)/took[1].Seconds(), "bare/s")
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "of-bare")
	b.ReportMetric(0, "ns/op")
}

// spread runs f n times on a number of goroutines and returns how long it took.
func spread(b *testing.B, workers, n int, f func(i int) error) time.Duration {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range workers {
		wg.Go(func() {
			for {
				i := int(next.Add(1))
				if i > n {
					return
				}
				if err := f(i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// BenchmarkBusy measures 64 writers with a publisher at their side that takes
// all, and how long a file waits for mutexes; -mutexprofile shows for which.
func BenchmarkBusy(b *testing.B) {
	const writers = 64
	bodies := corpusBodies(b)
	_, r := openQueue(b, Options{})
	ctx, stop := context.WithCancel(b.Context())
	var publisher sync.WaitGroup
	publisher.Go(func() {
		for {
			leases, err := r.Lease(ctx, 256)
			if err != nil {
				return
			}
			if err := r.Ack(leases...); err != nil {
				b.Error(err)
			}
		}
	})
	waited, n, start := mutexWait(), 0, time.Now()
	for b.Loop() {
		const round = 1024
		spread(b, writers, round, func(i int) error { return stageOne(r, bodies[i%len(bodies)]) })
		n += round
	}
	b.ReportMetric(float64(n)/time.Since(start).Seconds(), "files/s")
	b.ReportMetric((mutexWait()-waited)*1e6/float64(n), "mutex-us/file")
	b.ReportMetric(0, "ns/op")
	stop()
	publisher.Wait()
}

// mutexWait is how long goroutines have waited for mutexes so far, in seconds.
func mutexWait() float64 {
	sample := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(sample)
	return sample[0].Value.Float64()
}

// stageOne is a file's way into the queue.
func stageOne(r *Route, body []byte) error {
	f := NewFileID()
	s := r.NewStage(f, StageInfo{File: "post_retry.node1.4242", UID: 1000})
	if err := s.Put(0, []Message{corpusMessage(f, body)}); err != nil {
		return err
	}
	return s.Commit()
}

// BenchmarkAppend measures one batch of one message against a bare synced put.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			bodies := corpusBodies(b)
			_, r := openQueue(b, Options{})
			against(b, writers, func(i int) error {
				return r.Append([]Message{corpusMessage(NewFileID(), bodies[i%len(bodies)])})
			}, bareDB(b, r))
		})
	}
}

// BenchmarkLease measures lease and ack of messages with a short and a long
// backlog behind them; the two take turns.
func BenchmarkLease(b *testing.B) {
	_, short := openQueue(b, Options{})
	_, long := openQueue(b, Options{})
	fill(b, short, 1000)
	fill(b, long, longBacklog)
	var times [2]time.Duration
	n := 0
	for b.Loop() {
		const round = 1000
		for i, r := range []*Route{short, long} {
			b.StopTimer()
			fill(b, r, round)
			b.StartTimer()
			start := time.Now()
			drain(b, r, round)
			times[i] += time.Since(start)
		}
		n += round
	}
	b.ReportMetric(float64(n)/times[0].Seconds(), "short/s")
	b.ReportMetric(float64(n)/times[1].Seconds(), "long/s")
	b.ReportMetric(times[0].Seconds()/times[1].Seconds(), "long-of-short")
	b.ReportMetric(0, "ns/op")
}

// longBacklog is the backlog of BenchmarkLease.
const longBacklog = 5_000_000

// BenchmarkDiskBytes reports how many bytes on disk a byte of payload takes,
// once the files have settled.
func BenchmarkDiskBytes(b *testing.B) {
	bodies := corpusBodies(b)
	for b.Loop() {
		q, r := openQueue(b, Options{})
		payload := 0
		for range 50 {
			f := NewFileID()
			ms := make([]Message, len(bodies))
			for i, body := range bodies {
				ms[i] = corpusMessage(f, body)
				ms[i].ID, ms[i].Line = f.MessageID(uint32(i+1)), uint32(i+1)
				payload += len(body)
			}
			if err := r.Append(ms); err != nil {
				b.Fatal(err)
			}
		}
		if err := q.engine.compact(b.Context(), seqKey(kindMessage, r.id, 0), seqKey(kindMessage, r.id+1, 0)); err != nil {
			b.Fatal(err)
		}
		m := q.engine.db.Metrics()
		b.ReportMetric(float64(m.Total().TablesSize)/float64(payload), "disk/payload")
	}
	b.ReportMetric(0, "ns/op")
}
