package integration

import (
	"fmt"
	"math/rand/v2"
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

// TestMount_KilledWriters proves F3 of the pains: programs are killed at random
// moments while they write, by SIGKILL, by SIGTERM and for want of memory. Of a
// format in which the file is the message, only whole messages come out, and torn
// ones are partial files; of one with a message a line, only whole lines come
// out, and a torn one is a partial file. What was closed is there once.
func TestMount_KilledWriters(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	torn := buildTorn(t)
	for _, format := range []struct {
		name  string
		args  []string
		check func(t *testing.T, got stored, closed map[string]bool)
	}{
		{"raw", []string{"--format", "raw", "--routing-key", "k"}, checkWholeFiles},
		{"lines", nil, checkWholeLines},
	} {
		t.Run(format.name, func(t *testing.T) {
			s := startSpool(t, deadBroker, append([]string{"--exchange", "x"}, format.args...)...)
			k := killer{
				s: s, torn: torn, format: format.name, log: filepath.Join(t.TempDir(), "log"),
				random: rand.New(rand.NewPCG(seed, 0)),
			}
			for i := range times(30, 1000) {
				k.kill(i)
			}
			s.untilClosed()
			if st := s.status().FS; st.UnknownEndings > 0 {
				t.Errorf("it is not known how %d writers ended", st.UnknownEndings)
			}
			if code := s.stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			got, closed := s.stored(), k.closed()
			t.Logf("%d files closed; %d messages, %d partial files", len(closed), len(got.pending), len(got.partial))
			if len(got.dead) > 0 {
				t.Errorf("%d dead letters, the first %.200q", len(got.dead), got.dead[0])
			}
			if len(closed) == 0 || len(got.partial) == 0 {
				t.Error("the kills hit nothing")
			}
			format.check(t, got, closed)
		})
	}
}

// buildTorn compiles the writer.
func buildTorn(t testing.TB) string {
	t.Helper()
	torn := filepath.Join(t.TempDir(), "torn")
	if out, err := exec.Command("gcc", "-O1", "-pthread", "-o", torn, "testdata/torn.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return torn
}

// killer starts writers and ends them.
type killer struct {
	s                 *spool
	torn, format, log string
	random            *rand.Rand
}

// kill starts a writer and ends it, each in another way.
func (k *killer) kill(i int) {
	k.s.t.Helper()
	args := []string{k.s.dir + "/f", k.log, strconv.Itoa(k.random.IntN(1 << 30)), k.format}
	if i%2 == 1 {
		args = append(args, "thread")
	}
	signal := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, 0}[i/2%3]
	if signal == 0 {
		if k.oom(args) {
			return
		}
		signal = syscall.SIGKILL
	}
	cmd := exec.Command(k.torn, args...)
	if err := cmd.Start(); err != nil {
		k.s.t.Fatal(err)
	}
	moment := time.NewTimer(time.Duration(k.random.IntN(30_000)) * time.Microsecond)
	<-moment.C
	if err := cmd.Process.Signal(signal); err != nil {
		k.s.t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != signal {
		k.s.t.Fatalf("the writer ended with %v", err)
	}
}

// oom starts a writer that the kernel kills for want of memory, and reports
// whether that could be arranged.
func (k *killer) oom(args []string) bool {
	k.s.t.Helper()
	group := memoryGroup()
	if group == "" {
		return false
	}
	defer os.Remove(group)
	script := `echo $$ > "$GROUP/cgroup.procs"; exec "$@"`
	cmd := exec.Command("bash", append([]string{"-euc", script, "bash", k.torn}, append(args, "oom")...)...)
	cmd.Env = append(os.Environ(), "GROUP="+group)
	if err := cmd.Run(); cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		k.s.t.Fatalf("in %s the writer ended with %v", group, err)
	}
	return true
}

// memoryGroup makes a control group of processes that may have 16 MiB together;
// "" if this machine does not let us.
func memoryGroup() string {
	for dir, limit := range map[string]string{
		"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max",
	} {
		group := fmt.Sprintf("%s/spoolfs-test-%d", dir, os.Getpid())
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		// The file must be there already: it is not where no controller is.
		f, err := os.OpenFile(filepath.Join(group, limit), os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("16777216")
			f.Close()
		}
		if err == nil {
			return group
		}
		os.Remove(group)
	}
	return ""
}

// closed returns the files whose close had returned 0, as "pid number".
func (k *killer) closed() map[string]bool {
	k.s.t.Helper()
	text, err := os.ReadFile(k.log)
	if err != nil {
		k.s.t.Fatal(err)
	}
	closed := map[string]bool{}
	for _, file := range lines(string(text)) {
		closed[file] = true
	}
	return closed
}

// wholeFile is what the writer means to write, in the format raw.
var wholeFile = regexp.MustCompile(`^(\d+ \d+) (\d+):(x*):end$`)

func checkWholeFiles(t *testing.T, got stored, closed map[string]bool) {
	t.Helper()
	seen := map[string]bool{}
	for _, body := range got.pending {
		m := wholeFile.FindStringSubmatch(body)
		if m == nil || strconv.Itoa(len(m[3])) != m[2] {
			t.Fatalf("a torn file was published: %.100q (%d bytes)", body, len(body))
		}
		if seen[m[1]] {
			t.Errorf("%s was published twice", m[1])
		}
		seen[m[1]] = true
	}
	for file := range closed {
		if !seen[file] {
			t.Errorf("file %s was closed and is not published", file)
		}
	}
	for _, body := range got.partial {
		head, _, _ := strings.Cut(body, ":")
		if i := strings.LastIndexByte(head, ' '); i > 0 && seen[head[:i]] {
			t.Errorf("file %s was published and is a partial file", head[:i])
		}
	}
}

// wholeLine is a line that the writer means to write.
var wholeLine = regexp.MustCompile(`^\{"pubTime": "20261130T070000.000", "baseUrl": "http://h", "relPath": "(\d+)/(\d+)/(\d+)/(\d+)"\}$`)

func checkWholeLines(t *testing.T, got stored, closed map[string]bool) {
	t.Helper()
	lines := map[string][]string{} // of each file
	for _, body := range got.pending {
		m := wholeLine.FindStringSubmatch(body)
		if m == nil {
			t.Fatalf("a torn line was published: %.200q", body)
		}
		file := m[1] + " " + m[2]
		if want := strconv.Itoa(len(lines[file])); m[3] != want {
			t.Errorf("line %s of %s was published, want %s", m[3], file, want)
		}
		lines[file] = append(lines[file], m[4])
	}
	for file := range closed {
		if all := lines[file]; len(all) == 0 || strconv.Itoa(len(all)-1) != all[0] {
			t.Errorf("file %s was closed, and %d of its lines are published", file, len(all))
		}
	}
	for _, body := range got.partial {
		if wholeLine.MatchString(body) || strings.Contains(body, "\n") {
			t.Errorf("a whole line was set aside: %.300q", body)
		}
	}
}
