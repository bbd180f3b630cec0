package integration

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"spoolfs/integration/rabbit"
)

// fourRoutes are a spool with four routes at two brokers, each with a queue.
type fourRoutes struct {
	*configured
	near, far *rabbit.Node
	queues    map[string]rabbit.Queue
	written   map[string]int  // messages of each route, in this run
	seen      map[string]bool // ids of messages of former runs
}

// fourNames are its routes: two at the near broker, one there whose exchange is
// missing, and one at the far one.
var fourNames = []string{"plain", "flood", "missing", "far"}

func newFourRoutes(t *testing.T) *fourRoutes {
	f := &fourRoutes{near: brokerNode(t), queues: map[string]rabbit.Queue{}, written: map[string]int{}, seen: map[string]bool{}}
	var err error
	if f.far, err = rabbit.Start(context.Background(), rabbit.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.far.Close(); err != nil {
			t.Error(err)
		}
	})
	// One who may not make an exchange.
	ctl(t, f.near, "add_user", "meagre", "s3cret")
	ctl(t, f.near, "set_permissions", "meagre", "^$", ".*", "^$")
	t.Cleanup(func() { ctl(t, f.near, "delete_user", "meagre") })
	config := "broker: " + f.near.URL() + "\nexchange: none\nformat: amqp\nroutes:\n"
	for _, name := range fourNames {
		more := ""
		switch name {
		case "missing":
			exchange := fmt.Sprintf("xs_missing_%d", time.Now().UnixNano())
			f.queues[name] = rabbit.Queue{URL: f.near.URL(), Name: exchange, Exchange: exchange}
			more = ", broker: '" + withUser(t, f.near.URL(), "meagre", "s3cret") + "'"
		case "far":
			f.queues[name] = newQueue(t, f.far)
			more = ", broker: '" + f.far.URL() + "'"
		default:
			f.queues[name] = newQueue(t, f.near)
		}
		config += fmt.Sprintf("  %s: {exchange: %s%s}\n", name, f.queues[name].Exchange, more)
	}
	f.configured = newConfigured(t, config)
	return f
}

// put writes files with so many messages each, numbered on.
func (f *fourRoutes) put(route string, files, messages int) {
	for range files {
		var text strings.Builder
		for range messages {
			fmt.Fprintf(&text, "{\"body\": \"%d\"}\n", f.written[route])
			f.written[route]++
		}
		f.place(fmt.Sprintf("%s/f%d", route, f.written[route]), text.String())
	}
}

// isolationFiles is how many files a run has for each route.
const isolationFiles = 60

// load has all routes written to at the same time, and waits until the others than
// one are done. It tells how fast those were.
func (f *fourRoutes) load(failing string, many map[string]int) {
	f.t.Helper()
	began, was := time.Now(), f.routes()
	var writing sync.WaitGroup
	var mu sync.Mutex // of written
	counts := map[string]int{}
	for _, name := range fourNames {
		counts[name] = max(1, many[name])
	}
	for _, name := range fourNames {
		own := *f
		own.written = map[string]int{name: f.written[name]}
		writing.Go(func() {
			own.put(name, isolationFiles, counts[name])
			mu.Lock()
			defer mu.Unlock()
			f.written[name] = own.written[name]
		})
	}
	writing.Wait()
	for _, name := range fourNames {
		if name == failing {
			continue
		}
		f.until("done with route "+name, func() bool { return f.routes()[name].waiting() == 0 })
		rate := float64(f.routes()[name].Publisher.ConfirmedTotal-was[name].Publisher.ConfirmedTotal) / time.Since(began).Seconds()
		f.t.Logf("%-8s %5.0f messages/s, a file is confirmed in %v", name, rate, f.latency(name))
	}
	f.t.Logf("the daemon has %d MiB of memory, %d messages wait", f.memory("VmRSS")>>20, f.waiting())
}

// waiting is how many messages wait in all routes.
func (f *fourRoutes) waiting() (n uint64) {
	for _, r := range f.routes() {
		n += r.waiting()
	}
	return n
}

// latency is the median of how long it takes from before the open of a file to its
// confirm, seen through the status.
func (f *fourRoutes) latency(route string) time.Duration {
	f.t.Helper()
	var took []time.Duration
	for range 9 {
		before, began := f.routes()[route].Publisher.ConfirmedTotal, time.Now()
		f.put(route, 1, 1)
		f.until("confirmed by "+route, func() bool { return f.routes()[route].Publisher.ConfirmedTotal > before })
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2].Round(100 * time.Microsecond)
}

// wantAll checks that all that was written to a route has arrived, in order unless
// the daemon has told of late files.
func (f *fourRoutes) wantAll(route string) {
	f.t.Helper()
	f.until("done with route "+route, func() bool { return f.routes()[route].waiting() == 0 })
	got := drainAll(f.t, f.queues[route], f.written[route], f.seen)
	late := f.status().Queue.Late // which the machine was too busy to keep in their places
	arrived := map[string]bool{}
	for i, d := range got {
		if string(d.Body) != strconv.Itoa(i) && late == 0 {
			f.t.Errorf("%s: message %d is %s", route, i, d.Body)
			break
		}
		f.seen[d.MessageID], arrived[string(d.Body)] = true, true
	}
	if len(got) != f.written[route] || len(arrived) != len(got) {
		f.t.Errorf("%s: %d messages of %d have arrived, %d of them different, %d late", route, len(got), f.written[route], len(arrived), late)
	}
	f.written[route] = 0 // and the next one is the first of another run
}

// TestRoutes_Isolation: four routes at two brokers are written to at the same time,
// and each fails in its own way in turn. The others deliver all, in order, and wait for
// nobody; and so does the one that failed, afterwards. The numbers are for people.
func TestRoutes_Isolation(t *testing.T) {
	f := newFourRoutes(t)
	for _, c := range []struct {
		name, route string
		fail, heal  func()
		many        map[string]int // messages a file
	}{
		{"exchange missing", "missing", func() {}, func() {
			if err := f.queues["missing"].Declare(limit(t, time.Minute)); err != nil {
				t.Fatal(err)
			}
		}, nil},
		{"all is well", "", func() {}, func() {}, nil},
		{"broker stopped", "far", func() { stopBroker(t, f.far) }, func() { startBroker(t, f.far) }, nil},
		{"broker frozen", "far", func() { signalNode(t, f.far.Freeze) }, func() { signalNode(t, f.far.Thaw) }, nil},
		{"broker stopped, and a flood for it", "far", func() { stopBroker(t, f.far) }, func() { startBroker(t, f.far) }, map[string]int{"far": times(100, 1000)}},
		{"flood", "flood", func() {}, func() {}, map[string]int{"flood": times(100, 1000)}},
	} {
		t.Log(c.name)
		c.fail()
		f.load(c.route, c.many)
		if kept := f.routes()[c.route].waiting(); c.route != "" && c.many == nil && kept != isolationFiles {
			t.Errorf("%s: %d messages of route %s wait, want all of its %d", c.name, kept, c.route, isolationFiles)
		}
		c.heal()
		if c.route != "" {
			f.sh("echo retry route=" + c.route + " > $M/.status/ctl")
		}
		for _, name := range fourNames {
			f.wantAll(name)
		}
	}
}

func signalNode(t *testing.T, signal func() error) {
	t.Helper()
	if err := signal(); err != nil {
		t.Fatal(err)
	}
}
