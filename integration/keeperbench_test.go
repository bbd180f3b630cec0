package integration

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// runRush writes files as fast as it can: a directory, a name, how many.
func runRush(args []string) int {
	count, err := strconv.Atoi(args[2])
	if err != nil {
		return 1
	}
	text := []byte(record("rush") + "\n")
	for n := range count {
		fd, err := unix.Open(fmt.Sprintf("%s/%s.%d", args[0], args[1], n), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o644)
		if err == nil {
			_, err = unix.Write(fd, text)
		}
		if err == nil {
			err = unix.Close(fd)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

// rush has writers write files into a spool, and returns how many a second.
func (s *spool) rush(writers, files int) float64 {
	s.t.Helper()
	var wait sync.WaitGroup
	start := time.Now()
	for w := range writers {
		wait.Go(func() {
			if out, err := self("rush", s.dir, fmt.Sprint(start.UnixNano(), "-", w), strconv.Itoa(files/writers)).CombinedOutput(); err != nil {
				s.t.Errorf("writer: %v: %s", err, bytes.TrimSpace(out))
			}
		})
	}
	wait.Wait()
	return float64(files/writers*writers) / time.Since(start).Seconds()
}

// rushRounds is how often the two are compared, each time one after the other.
const rushRounds = 6

// BenchmarkKeeper_Files measures what G10 costs: files a second of a spool with a
// keeper against one without, in the same run and in turn. The broker is away. The
// wanted ratio is 0.95.
func BenchmarkKeeper_Files(b *testing.B) {
	for _, writers := range []int{8, 32} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			kept := newSpool(b, plainBinary, deadBroker, "--exchange", "x")
			alone := newSpool(b, plainBinary, deadBroker, "--exchange", "x", "--no-keeper")
			kept.start()
			alone.start()
			both := []*spool{kept, alone}
			for _, s := range both {
				s.rush(writers, 500)
			}
			rates := make([][]float64, len(both))
			var ratios []float64
			for b.Loop() {
				for round := range rushRounds {
					for i := range both {
						i = (i + round) % len(both)
						rates[i] = append(rates[i], both[i].rush(writers, 3000))
					}
					n := len(rates[0]) - 1
					ratios = append(ratios, rates[0][n]/rates[1][n])
				}
			}
			b.ReportMetric(middle(ratios), "of-no-keeper")
			b.ReportMetric(middle(rates[0]), "files/s")
			b.ReportMetric(middle(rates[1]), "no-keeper-files/s")
			b.ReportMetric(0, "ns/op")
			b.Logf("ratios %.2f", ratios)
			for _, s := range both {
				if code := s.stop(); code != 0 {
					b.Errorf("exit code %d:\n%s", code, s.stderr)
				}
			}
		})
	}
}

func middle(numbers []float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	return sorted[len(sorted)/2]
}
