package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// coalescePaths and coalesceRounds are how many messages about how many paths are written
// in each of two formats.
const (
	coalescePaths  = 100
	coalesceRounds = 100
)

// TestRoutes_Coalesce: while a broker is away, 10,000 records about 100 paths and as many
// raw files as there is time for are written, and the worker is killed in the middle. When
// it is back, of each path the last one arrives, once, and the others are counted.
func TestRoutes_Coalesce(t *testing.T) {
	rawRounds := 10
	if chaos() {
		rawRounds = coalesceRounds
	}
	node := brokerNode(t)
	notices, files := newQueue(t, node), newQueue(t, node)
	config := fmt.Sprintf("exchange: x\nroutes:\n  notices: {exchange: %s, coalesce: true}\n"+
		"  files: {format: raw, routing_key: '${base}', exchange: %s, coalesce: true, then: [copies]}\n  copies: {format: raw, routing_key: x, broker: 'stdout:', exchange: c}\n",
		notices.Exchange, files.Exchange)
	s := newConfigured(t, "broker: amqp://127.0.0.1:9/\n"+config) // nobody answers there
	worker := s.daemonPID()
	var writers sync.WaitGroup
	writers.Go(func() {
		for round := range coalesceRounds {
			s.place(fmt.Sprintf("notices/%d", round), noticesOf(round))
			if round == coalesceRounds/2 {
				if err := syscall.Kill(worker, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for part := range 8 {
		writers.Go(func() {
			for round := range rawRounds {
				for path := part; path < coalescePaths; path += 8 {
					s.place(fmt.Sprintf("files/p%d", path), fmt.Sprint(round))
				}
			}
		})
	}
	writers.Wait()
	s.until("all but the last are replaced", func() bool {
		all := s.routes()
		return all["notices"].waiting() == coalescePaths && all["files"].waiting() == coalescePaths
	})
	s.wantCoalesced("notices", coalescePaths*(coalesceRounds-1))
	s.wantCoalesced("files", uint64(coalescePaths*(rawRounds-1)))
	if text := s.reload("broker: " + node.URL() + "\n" + config); text != "" {
		t.Errorf("reload: %s", text)
	}
	got := map[string]string{}
	for _, d := range consume(t, notices, coalescePaths) {
		var m struct {
			RelPath string
			Size    int
			FileOp  map[string]string
		}
		if err := json.Unmarshal(d.Body, &m); err != nil {
			t.Fatal(err)
		}
		if _, removed := m.FileOp["remove"]; !removed || m.Size != coalesceRounds-1 {
			t.Errorf("the last of %s is %s", m.RelPath, d.Body)
		}
		got[m.RelPath] = ""
	}
	for _, d := range consume(t, files, coalescePaths) {
		if want := fmt.Sprint(rawRounds - 1); string(d.Body) != want {
			t.Errorf("the last of %s is %s, want %s", d.Key, d.Body, want)
		}
		got[d.Key] = ""
	}
	if len(got) != 2*coalescePaths {
		t.Errorf("messages about %d paths have arrived, want %d", len(got), 2*coalescePaths)
	}
	s.until("nothing waits", func() bool { return s.routes()["notices"].waiting()+s.routes()["files"].waiting() == 0 })
}

// noticesOf is a file with a record about each path; those of the last round are removals.
func noticesOf(round int) string {
	var text strings.Builder
	for path := range coalescePaths {
		op := ""
		if round == coalesceRounds-1 {
			op = `, "fileOp": {"remove": ""}`
		}
		fmt.Fprintf(&text, `{"pubTime": "20261130T070000", "baseUrl": "http://h/", "relPath": "d/%d", "size": %d%s}`+"\n", path, round, op)
	}
	return text.String()
}

// wantCoalesced compares what the status and the metrics say of what was replaced.
func (s *spool) wantCoalesced(route string, want uint64) {
	s.t.Helper()
	if got := s.routes()[route].Queue.Coalesced; got != want {
		s.t.Errorf("%s: %d messages were replaced, want %d", route, got, want)
	}
	metrics, err := os.ReadFile(filepath.Join(s.dir, ".status", "metrics"))
	if err != nil {
		s.t.Fatal(err)
	}
	if line := fmt.Sprintf("spoolfs_coalesced_total{route=%q} %d\n", route, want); !strings.Contains(string(metrics), line) {
		s.t.Errorf("want %q among\n%s", line, metrics)
	}
}
