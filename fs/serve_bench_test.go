package fs

import (
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/device"
)

// A writer is this program as another process: it writes files and says so.
const writerEnv = "SPOOLFS_FS_WRITER"

// writeFiles is what a writer does: dir, prefix, count.
func writeFiles(args string) error {
	words := strings.Fields(args)
	n, err := strconv.Atoi(words[2])
	if err != nil {
		return err
	}
	text := []byte(strings.Repeat(line("x"), 5))
	for i := range n {
		f, err := os.OpenFile(filepath.Join(words[0], fmt.Sprint(words[1], ".", i)), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if _, err := f.Write(text); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// load has writers write files, and returns how many a second.
func load(b testing.TB, dir string, writers, files int) float64 {
	b.Helper()
	var wg sync.WaitGroup
	start := time.Now()
	for w := range writers {
		wg.Go(func() {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d-%d %d", writerEnv, dir, w, start.UnixNano(), files))
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Errorf("writer: %v: %s", err, out)
			}
		})
	}
	wg.Wait()
	return float64(writers*files) / time.Since(start).Seconds()
}

// BenchmarkServe compares our loop with go-fuse's own server: in each round both
// serve the same file system on the same kind of store, one after the other.
func BenchmarkServe(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("mounting needs root")
	}
	for _, writers := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			var ratios, rates []float64
			for b.Loop() {
				ours, stock := serveOurs(b, writers), serveStock(b, writers)
				ratios, rates = append(ratios, ours/stock), append(rates, ours)
			}
			slices.Sort(ratios)
			slices.Sort(rates)
			b.ReportMetric(rates[len(rates)/2], "files/s")
			b.ReportMetric(ratios[len(ratios)/2], "of-stock")
			b.ReportMetric(0, "ns/op")
			b.Logf("ratios %.2f, ours %.0f", ratios, rates)
		})
	}
}

const benchFiles = 4000

func serveOurs(b *testing.B, writers int) float64 {
	r := benchRig(b)
	defer r.stop()
	dir := b.TempDir()
	m, err := r.fs.Mount(dir)
	if err != nil {
		b.Fatal(err)
	}
	load(b, dir, writers, 20)
	rate := load(b, dir, writers, benchFiles/writers)
	if err := m.Unmount(); err != nil {
		b.Fatal(err)
	}
	return rate
}

func serveStock(b *testing.B, writers int) float64 {
	r := benchRig(b)
	defer r.stop()
	dir := b.TempDir()
	server, err := fuse.NewServer(r.fs, dir, &fuse.MountOptions{
		AllowOther: true, DirectMount: true, FsName: "spoolfs", Name: "spoolfs",
		MaxWrite: device.MaxWrite, MaxBackground: device.MaxBackground, DisableXAttrs: true, DisableReadDirPlus: true,
		ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC, Logger: log.New(io.Discard, "", 0),
	})
	if err != nil {
		b.Fatal(err)
	}
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		b.Fatal(err)
	}
	load(b, dir, writers, 20)
	rate := load(b, dir, writers, benchFiles/writers)
	if err := server.Unmount(); err != nil {
		b.Fatal(err)
	}
	return rate
}

func benchRig(b *testing.B) *rig {
	r := &rig{t: b, store: b.TempDir()}
	r.start()
	r.fs.processOf = processOf
	return r
}
