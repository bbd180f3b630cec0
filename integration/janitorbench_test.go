package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// naiveJanitor is the obvious loop: list, read, publish, delete. It waits for no
// confirm, and loses what it has read when it is killed between the last two.
const naiveJanitor = `
import amqp, os, sys
host, exchange, dir = sys.argv[1:]
c = amqp.Connection(host=host, userid='guest', password='guest'); c.connect()
ch = c.channel()
ch.exchange_declare(exchange, 'topic', durable=True, auto_delete=False)
names = sorted(os.listdir(dir), key=lambda n: os.stat(os.path.join(dir, n)).st_mtime)
for name in names:
    path = os.path.join(dir, name)
    with open(path) as f:
        for line in f:
            ch.basic_publish(amqp.Message(line, content_type='application/json', delivery_mode=2), exchange=exchange, routing_key='v03.d')
    os.unlink(path)
c.close()
`

// BenchmarkJanitor_Directory measures how long "spoolfs janitor" takes for a
// directory of 500,000 files (SPOOLFS_BENCH_FILES), until all is on its disk and
// until all is confirmed, and how much memory; and the same for a loop in Python
// over the same files, which is durable nowhere. Wanted are 5,000 files a second.
//
// Each file is in two directories at first, as one with two names. The loop goes
// first, and leaves each with the name that the janitor finds.
func BenchmarkJanitor_Directory(b *testing.B) {
	files := 500_000
	if text := os.Getenv("SPOOLFS_BENCH_FILES"); text != "" {
		files, _ = strconv.Atoi(text)
	}
	node := brokerNode(b)
	host := strings.TrimSuffix(strings.TrimPrefix(node.URL(), "amqp://guest:guest@"), "/")
	host, _, _ = strings.Cut(host, "/")
	for b.Loop() {
		dir, same := b.TempDir(), b.TempDir()
		manyFiles(b, dir, same, files)
		start := time.Now()
		cmd := exec.Command("/usr/bin/python3", "-c", naiveJanitor, host, "xs_bench", same)
		if said, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, said)
		}
		python := report(b, "python", files, time.Since(start), cmd)

		// The loop has changed all of them, those of the last second just now: the
		// janitor comes back to these.
		start = time.Now()
		cmd = exec.Command(plainBinary, "janitor", "--config", "/dev/null", "--once", "--janitor-age", "1s", "--max-bytes", "8GiB",
			"--store", filepath.Join(b.TempDir(), "store"), "--broker", node.URL(), "--exchange", "xs_bench", dir)
		said, err := cmd.CombinedOutput()
		if err != nil {
			b.Fatalf("%v\n%s", err, said)
		}
		b.ReportMetric(report(b, "janitor", files, time.Since(start), cmd)/python, "janitor/python")
		b.ReportMetric(float64(files)/takingTime(b, string(said)), "janitor-files/s-to-disk")
		if n := filesIn(dir); n > 0 {
			b.Fatalf("%d files are left", n)
		}
	}
}

// manyFiles makes files in two directories.
func manyFiles(b *testing.B, dir, same string, count int) {
	b.Helper()
	for i := range count {
		text, name := record(fmt.Sprint("d/", i))+"\n", fmt.Sprintf("post_retry.node%d.%d", i%100, i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		if err := os.Link(filepath.Join(dir, name), filepath.Join(same, name)); err != nil {
			b.Fatal(err)
		}
	}
}

// report reports files a second, which it returns, and the peak of the memory.
func report(b *testing.B, who string, files int, took time.Duration, cmd *exec.Cmd) (rate float64) {
	b.Helper()
	rate = float64(files) / took.Seconds()
	b.ReportMetric(rate, who+"-files/s")
	b.ReportMetric(float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1024, who+"-MiB")
	return rate
}

// takingTime is how many seconds the janitor took until the last file was gone, as
// its log has it.
func takingTime(b *testing.B, log string) float64 {
	b.Helper()
	stamp := func(line string) time.Time {
		m := regexp.MustCompile(`^time=(\S+)`).FindStringSubmatch(line)
		if m == nil {
			b.Fatalf("no time in %q", line)
		}
		at, err := time.Parse("2006-01-02T15:04:05.000Z07:00", m[1])
		if err != nil {
			b.Fatal(err)
		}
		return at
	}
	var began, ended time.Time
	for _, line := range lines(log) {
		switch {
		case strings.Contains(line, "msg=ready"):
			began = stamp(line)
		case strings.Contains(line, `msg="took files"`):
			ended = stamp(line)
		}
	}
	return max(ended.Sub(began).Seconds(), 0.001)
}
