package integration

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// openFiles is a program that leaves files of every kind, says "ready", and keeps
// those open that it has not closed.
const openFiles = `
def put(f, *names):
    for n in names: os.write(f, (record(n) + "\n").encode())
def record(n): return A.replace("d/a", "d/" + n)
def new(name): return os.open(M + "/" + name, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
f = new("closed"); put(f, "closed"); os.close(f)
f = new(".held"); put(f, "held1"); os.close(f)
f = new(".held"); put(f, "held2"); os.close(f)
f = new("gone.tmp"); put(f, "gone"); os.close(f); os.unlink(M + "/gone.tmp")
f = new(".moved"); put(f, "moved"); os.close(f); os.rename(M + "/.moved", M + "/moved.part")
os.mkdir(M + "/dir", 0o751)
os.mkdir(M + "/dir/sub")
f = new("dir/sub/x.inflight"); put(f, "below"); os.close(f)
f = new(".fsynced"); put(f, "fsynced"); os.fsync(f); put(f, "lost")
f = new("flushed"); put(f, "flushed"); os.close(os.dup(f)); put(f, "lost")
f = new("synced"); put(f, "synced"); os.fsync(f); os.write(f, b"{\"torn"); os.fsync(f)
f = new("open"); put(f, "lost")
f = new(".published"); put(f, "published"); os.fsync(f); os.rename(M + "/.published", M + "/published")
print("ready", flush=True)
sys.stdin.read()
`

// TestMount_RestartKeepsFiles: held files and directories are there after a restart
// as they were closed or fsync'ed last, and what was staged of others is committed,
// whether the daemon was stopped or killed.
func TestMount_RestartKeepsFiles(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*spool)
	}{
		{"stopped", func(s *spool) {
			if code := s.stop(); code != 0 {
				t.Errorf("exit code %d:\n%s", code, s.stderr)
			}
		}},
		{"killed", (*spool).kill},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startSpool(t, deadBroker, "--exchange", "x", "--stop-files", "10ms")
			for k, v := range map[string]string{"A": record("a"), "B": "", "C": "", "T": "", "M": s.dir} {
				t.Setenv(k, v)
			}
			startOpener(t)
			tt.end(s)
			s.args = []string{"--store", s.store, "--broker", "stdout:", "--exchange", "x"}
			s.start()
			s.until("done with what was closed", func() bool { return s.status().Publisher.ConfirmedTotal >= 4 })
			checkPublished(t, s, "closed", "flushed", "synced", "published")
			s.sh(`set -x
test "$(ls -A $M | sort | tr '\n' ' ')" = ".fsynced .held .status dir moved.part "
test "$(stat -c %a $M/dir)" = 751
test "$(ls -A $M/dir/sub)" = x.inflight
test "$(grep -c lost $M/.fsynced)" = 0
test "$(wc -l < $M/.held)" = 2
for f in .fsynced .held moved.part dir/sub/x.inflight; do mv $M/$f $M/done; done
rmdir $M/dir/sub $M/dir`)
			s.untilIngested(5)
			s.untilSent()
			checkPublished(t, s, "closed", "flushed", "synced", "published", "fsynced", "held1", "held2", "moved", "below")
			if code := s.stop(); code != 0 {
				t.Errorf("exit code %d:\n%s", code, s.stderr)
			}
		})
	}
}

// startOpener runs openFiles until the end of the test, and waits until it is
// ready.
func startOpener(t testing.TB) {
	t.Helper()
	cmd := exec.Command("bash", "-c", py("import sys\n"+openFiles))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait() // its close of the open files fails, as it should
	})
	if text, err := bufio.NewReader(out).ReadString('\n'); text != "ready\n" {
		t.Fatalf("the opener said %q, %v", text, err)
	}
}

// checkPublished compares the paths of what was published with names, in order.
func checkPublished(t testing.TB, s *spool, want ...string) {
	t.Helper()
	var got []string
	for _, body := range s.published() {
		_, path, _ := strings.Cut(body, `"d/`)
		name, _, _ := strings.Cut(path, `"`)
		got = append(got, name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("published %q, want %q", got, want)
	}
}
