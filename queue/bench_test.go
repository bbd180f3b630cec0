package queue

import (
	"fmt"
	"os"
	"path/filepath"
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
			db, err := pebble.Open(filepath.Join(b.TempDir(), "bare"), new(engine).pebbleOptions(&r.q.opts))
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			stage := func(i int) error {
				f := NewFileID()
				s := r.NewStage(f, StageInfo{File: "post_retry.node1.4242", UID: 1000})
				if err := s.Put(0, []Message{corpusMessage(f, bodies[i%len(bodies)])}); err != nil {
					return err
				}
				return s.Commit()
			}
			bare := func(i int) error {
				f := NewFileID()
				m := corpusMessage(f, bodies[i%len(bodies)])
				return db.Set(f[:], encodeRecord(&m), pebble.Sync)
			}
			var ours, floor time.Duration
			n := 0
			for b.Loop() {
				const round = 256
				ours += spread(b, writers, round, stage)
				floor += spread(b, writers, round, bare)
				n += round
			}
			b.ReportMetric(float64(n)/ours.Seconds(), "files/s")
			b.ReportMetric(float64(n)/floor.Seconds(), "bare/s")
			b.ReportMetric(floor.Seconds()/ours.Seconds(), "of-bare")
			b.ReportMetric(0, "ns/op")
		})
	}
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
