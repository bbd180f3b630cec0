package fs

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// TestProcessOf: each thread of a process belongs to it.
func TestProcessOf(t *testing.T) {
	self := process(os.Getpid())
	if got := processOf(uint32(self)); got != self {
		t.Errorf("the first thread is of process %d, want %d", got, self)
	}
	other := make(chan int)
	quit := make(chan struct{})
	for range 2 { // one of them is not the first thread
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			other <- unix.Gettid()
			<-quit
		}()
	}
	for range 2 {
		if thread := <-other; processOf(uint32(thread)) != self {
			t.Errorf("thread %d is of process %d, want %d", thread, processOf(uint32(thread)), self)
		}
	}
	close(quit)
	for _, thread := range []uint32{0, 1<<31 - 1} {
		if got := processOf(thread); got != 0 {
			t.Errorf("thread %d is of process %d", thread, got)
		}
	}
}

// TestParseEnding: only an exit code with a signal in it is a kill.
func TestParseEnding(t *testing.T) {
	stat := func(flags, code string) []byte {
		f := slices.Repeat([]string{"0"}, 50)
		f[0], f[statFlags], f[statExitCode] = "R", flags, code
		return []byte("123 (a ) name) " + strings.Join(f, " ") + "\n")
	}
	for name, tt := range map[string]struct {
		stat []byte
		want ending
	}{
		"runs":               {stat("4194304", "0"), endingNot},
		"runs after a stop":  {stat("4194304", "19"), endingNot},
		"exit 0":             {stat("4194308", "0"), endingUnknown},
		"exit 3":             {stat("4194308", "768"), endingNot},
		"SIGKILL":            {stat("4194308", "9"), endingKilled},
		"SIGSEGV and a core": {stat("4194308", "139"), endingKilled},
		"short":              {[]byte("1 (x) R 0 0"), endingUnknown},
		"empty":              {nil, endingUnknown},
	} {
		if got := parseEnding(tt.stat); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// TestFS_KilledWriter proves F11 for files that are messages, with real processes
// on a real mount: killed while they write, after they have written, with the
// descriptor inherited from and by others.
func TestFS_KilledWriter(t *testing.T) {
	r := newRig(t, Options{Format: ingest.NewRaw("k")})
	m := r.mount()
	for _, tt := range []struct {
		name, script       string
		published, partial string
	}{
		{"ends well", `printf whole > $M/f`, "whole", ""},
		{"fails", `exec > $M/f; printf whole; exit 3`, "whole", ""},
		{"killed", `exec > $M/f; printf part; kill -9 $$`, "", "part"},
		{"terminated", `exec > $M/f; printf part; kill $$`, "", "part"},
		{"killed after a close of a duplicate", `exec 7> $M/f; printf part >&7; (:); kill -9 $$`, "", "part"},
		{"killed after an fsync", `exec > $M/f; printf part; sync $M/f; kill -9 $$`, "", "part"},
		{"a child was killed that wrote nothing", `(sh -c 'kill -9 $$'; printf whole) > $M/f; :`, "whole", ""},
		{"a child was killed after another wrote", `exec > $M/f; printf wh; sh -c 'kill -9 $$'; printf ole`, "whole", ""},
		{"a child was killed that wrote last", `(sh -c 'printf part; kill -9 $$'; :) > $M/f; :`, "", "part"},
		{"closed before the kill", `printf whole > $M/f; kill -9 $$`, "whole", ""},
		{"killed with nothing written", `exec > $M/f; kill -9 $$`, "", ""},
	} {
		cmd := exec.Command("bash", "-c", tt.script)
		cmd.Env = append(os.Environ(), "M="+m.dir)
		out, _ := cmd.CombinedOutput() // it fails, where it is killed
		r.untilReleased()
		published, partial := r.bodies(), ""
		_, err := r.route.PurgeAll(queue.Partial, func(p *queue.Message) bool {
			partial += string(p.Body)
			return true
		})
		if err != nil || published != tt.published || partial != tt.partial {
			t.Errorf("%s: published %q and set aside %q, want %q and %q; %v\n%s",
				tt.name, published, partial, tt.published, tt.partial, err, out)
		}
	}
	if got := r.fs.Stats().UnknownEndingsTotal; got != 0 {
		t.Errorf("%d endings were not known", got)
	}
}
