package integration

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"
)

// TestMount_Alternating proves G6: two processes take turns, the close of one
// comes before the open of the other, and their messages never change places, with
// the broker up and with it down.
func TestMount_Alternating(t *testing.T) {
	turns := times(700, 50_000) // of each process, with the broker up, and again down
	node := brokerNode(t)
	q := newQueue(t, node)
	s := newSpool(t, plainBinary, node.URL(), "--exchange", q.Exchange)
	s.start()
	s.alternate("up", turns)
	s.untilIngested(uint64(2 * turns))
	stopBroker(t, node)
	s.alternate("down", turns)
	s.untilIngested(uint64(4 * turns))
	startBroker(t, node)
	got := consume(t, q, 4*turns)
	for i, d := range got {
		phase, n := "up", i
		if i >= 2*turns {
			phase, n = "down", i-2*turns
		}
		if want := numbered(phase, n); string(d.Body) != want+"\n" && string(d.Body) != want {
			t.Fatalf("message %d is %s, want %s", i, d.Body, want)
		}
	}
}

// alternate lets two processes take turns until each has written count files.
func (s *spool) alternate(name string, count int) {
	s.t.Helper()
	toSecond, fromFirst, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	toFirst, fromSecond, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	first := self("alternate", s.dir+"/f", name, strconv.Itoa(count), "0")
	first.Stdin, first.Stdout, first.Stderr = toFirst, fromFirst, os.Stderr
	second := self("alternate", s.dir+"/f", name, strconv.Itoa(count), "1")
	second.Stdin, second.Stdout, second.Stderr = toSecond, fromSecond, os.Stderr
	for _, c := range []interface{ Start() error }{first, second} {
		if err := c.Start(); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, c := range []io.Closer{toFirst, toSecond, fromFirst, fromSecond} {
		c.Close()
	}
	for _, c := range []interface{ Wait() error }{first, second} {
		if err := c.Wait(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// runAlternate writes a file for each byte that comes, and sends one on when the
// file is closed. The one whose number is 0 begins.
func runAlternate(args []string) int {
	path, name := args[0], args[1]
	count, err := strconv.Atoi(args[2])
	if err != nil {
		return 1
	}
	number, err := strconv.Atoi(args[3])
	if err != nil {
		return 1
	}
	turn := []byte{0}
	for n := number; n < 2*count; n += 2 {
		if n > 0 {
			if _, err := os.Stdin.Read(turn); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		if err := os.WriteFile(path, []byte(numbered(name, n)+"\n"), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if n < 2*count-1 {
			if _, err := os.Stdout.Write(turn); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
	}
	return 0
}
