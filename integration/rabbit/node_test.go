package rabbit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Guarantee 2, and what one sees of a node that runs.
func TestNode_StopAndKillKeepTheData(t *testing.T) {
	n := startNode(t)
	q := declareQueue(t, n)
	url := n.URL()

	publish(t, q, 500)
	if err := n.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n.Running() {
		t.Fatal("runs after Stop")
	}
	restart(t, n)
	consume(t, q, 500)

	publish(t, q, 600)
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	if n.Running() {
		t.Fatal("runs after Kill")
	}
	restart(t, n)
	consume(t, q, 600)

	if n.URL() != url {
		t.Errorf("the URL was %s and is %s", url, n.URL())
	}
	if out, err := n.Ctl(t.Context(), "list_queues", "name", "messages"); err != nil {
		t.Error(err)
	} else if got, want := strings.TrimSpace(out), q.Name+"\t0"; !strings.HasSuffix(got, want) {
		t.Errorf("list_queues: got %q, want %q", got, want)
	}
	if _, err := n.Ctl(t.Context(), "list_quees"); err == nil || !strings.Contains(err.Error(), "list_quees") {
		t.Errorf("wrong command: got error %v", err)
	}
}

func restart(tb testing.TB, n *Node) {
	tb.Helper()
	for range 2 { // the second is for nothing
		if err := n.Start(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
	if !n.Running() {
		tb.Fatal("does not run after Start")
	}
}

// Guarantee 3, with two nodes at once.
func TestNode_CloseLeavesNothing(t *testing.T) {
	nodes := make([]*Node, 2)
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() {
			var err error
			if nodes[i], err = Start(t.Context(), Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		for _, n := range nodes {
			if n != nil {
				n.Close()
			}
		}
		t.FailNow()
	}

	queues := []Queue{declareQueue(t, nodes[0]), declareQueue(t, nodes[1])}
	publish(t, queues[0], 10)
	publish(t, queues[1], 20)
	consume(t, queues[0], 10)
	consume(t, queues[1], 20)

	for _, n := range nodes {
		family := familyOf(n)
		if len(family) < 3 { // epmd, the node, its child setup
			t.Errorf("the node has only %d processes", len(family))
		}
		closeNode(t, n)
		closeNode(t, n)
		wantGone(t, family)
		if _, err := os.Stat(n.home.dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the directory after Close: got %v", err)
		}
		if err := n.Start(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("Start after Close: got %v, want %v", err, ErrClosed)
		}
	}
}

func familyOf(n *Node) []procID {
	var family []procID
	for _, p := range []*process{n.epmd, n.server} {
		id, _, _, _ := readStat("/proc/" + strconv.Itoa(p.pid()) + "/stat")
		family = append(append(family, id), descendants(p.pid())...)
	}
	return family
}

func wantGone(tb testing.TB, family []procID) {
	tb.Helper()
	if err := waitGone(family); err != nil {
		tb.Error(err)
	}
}

// Guarantee 4.
func TestNode_DiesWithItsProcess(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), orphanEnv+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir, _ := bufio.NewReader(out).ReadString('\n')
	dir = strings.TrimSpace(dir)
	if !strings.Contains(filepath.Base(dir), "spoolfs-rabbit-") {
		t.Fatalf("got directory %q", dir)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })

	family := descendants(cmd.Process.Pid)
	if len(family) < 3 {
		t.Errorf("the node has only %d processes", len(family))
	}
	cmd.Process.Kill()
	cmd.Wait()
	wantGone(t, family)
}

func waitToBeKilled() {
	n, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(n.home.dir)
	select {}
}

// Guarantee 1, the second half.
func TestNode_StartSaysWhyNot(t *testing.T) {
	ports, err := reservePorts()
	if err != nil {
		t.Fatal(err)
	}
	home, err := newHome(Options{}.withDefaults(), ports)
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{opts: Options{}.withDefaults(), home: home, ports: ports}
	t.Cleanup(func() { closeNode(t, n) })
	if err := os.WriteFile(home.path("rabbitmq.config"), []byte("nonsense"), 0o644); err != nil {
		t.Fatal(err)
	}

	err = n.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "configuration_file") {
		t.Errorf("got error %v, want what is wrong with the configuration file", err)
	}
	if n.Running() {
		t.Error("runs after a failed start")
	}
}

func TestNode_StartWithoutRabbitMQ(t *testing.T) {
	_, err := Start(t.Context(), Options{Server: "/nonexistent/rabbitmq-server"})
	if err == nil || !strings.Contains(err.Error(), "install rabbitmq-server (make deps)") {
		t.Errorf("got error %v", err)
	}
}
