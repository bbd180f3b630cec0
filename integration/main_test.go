// Package integration tests the whole program: the real binary, a real mount, a
// real broker and real writers.
package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"spoolfs/integration/rabbit"
)

// The program under test, built by TestMain: with the race detector, and as it
// ships for tests that measure.
var raceBinary, plainBinary string

func TestMain(m *testing.M) {
	if spec := os.Getenv(writerEnv); spec != "" {
		os.Exit(runWriter(spec))
	}
	if run := roles[os.Getenv(roleEnv)]; run != nil {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "spoolfs-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	raceBinary, plainBinary = filepath.Join(dir, "race", "spoolfs"), filepath.Join(dir, "plain", "spoolfs")
	for _, args := range [][]string{{"-race", "-o", raceBinary}, {"-o", plainBinary}} {
		args = append(append([]string{"build"}, args...), "spoolfs/cmd/spoolfs")
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
	}
	defer func() {
		if broker.node != nil {
			if err := broker.node.Close(); err != nil {
				fmt.Fprintln(os.Stderr, "close broker:", err)
			}
		}
	}()
	return m.Run()
}

// broker is the node that the tests share; each uses an exchange of its own.
var broker struct {
	once sync.Once
	node *rabbit.Node
	err  error
}

// brokerNode returns the shared broker, running.
func brokerNode(t testing.TB) *rabbit.Node {
	t.Helper()
	broker.once.Do(func() { broker.node, broker.err = rabbit.Start(context.Background(), rabbit.Options{}) })
	if broker.err != nil {
		t.Fatal(broker.err)
	}
	startBroker(t, broker.node)
	return broker.node
}

func startBroker(t testing.TB, n *rabbit.Node) {
	t.Helper()
	if err := n.Start(limit(t, 2*time.Minute)); err != nil {
		t.Fatal(err)
	}
}

func stopBroker(t testing.TB, n *rabbit.Node) {
	t.Helper()
	if err := n.Stop(limit(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
}

// limit is a context for what must not take longer than d.
func limit(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// newQueue makes an exchange and a queue bound to it.
func newQueue(t testing.TB, n *rabbit.Node) rabbit.Queue {
	t.Helper()
	name := fmt.Sprintf("xs_%s_%d", filepath.Base(t.Name()), time.Now().UnixNano())
	q := rabbit.Queue{URL: n.URL(), Name: name, Exchange: name}
	if err := q.Declare(limit(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	return q
}

// consume takes want messages, and checks that there are no more.
func consume(t testing.TB, q rabbit.Queue, want int) []rabbit.Delivery {
	t.Helper()
	got, err := q.Consume(limit(t, 2*time.Minute), want)
	if err != nil {
		t.Fatalf("received %d of %d messages: %v", len(got), want, err)
	}
	more, err := q.Drain(limit(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if len(more) > 0 {
		t.Errorf("received %d messages more than %d, such as %q", len(more), want, more[0].Body)
	}
	return got
}
