package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// bareSpool prepares a spool whose mountpoint everybody may write to while nothing
// is mounted on it.
func bareSpool(t *testing.T) *spool {
	t.Helper()
	s := newSpool(t, raceBinary, deadBroker, "--exchange", "x")
	if err := os.Chmod(s.dir, 0o1777); err != nil {
		t.Fatal(err)
	}
	return s
}

// writeBare writes files below the mount, of a user.
func (s *spool) writeBare(uid int, files map[string]string) {
	s.t.Helper()
	for name, text := range files {
		path := filepath.Join(s.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
		if err := os.Chown(path, uid, uid); err != nil {
			s.t.Fatal(err)
		}
	}
}

// left lists the files below the mount, which must not be mounted.
func (s *spool) left() []string {
	s.t.Helper()
	for unix.Unmount(s.dir, unix.MNT_DETACH) == nil {
		continue
	}
	var names []string
	err := filepath.WalkDir(s.dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() || strings.HasPrefix(e.Name(), ".spoolfs") {
			names = append(names, strings.TrimPrefix(path, s.dir+"/"))
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return names
}

// TestSweep_WrittenWhileNothingIsMounted proves the bare directory: what is
// written into the mountpoint while nothing is mounted is published after the
// next start, credited to who wrote it; what is no message is set aside, and a
// temporary name goes on waiting for its rename.
func TestSweep_WrittenWhileNothingIsMounted(t *testing.T) {
	s := bareSpool(t)
	if err := os.MkdirAll(filepath.Join(s.dir, "d/e"), 0o755); err != nil {
		t.Fatal(err)
	}
	longest := strings.Repeat("n", 255)
	s.writeBare(alice, map[string]string{
		"a": record("a1") + "\n" + record("a2") + "\n", "d/e/b": record("b") + "\n", longest: record("long") + "\n",
		"mixed": record("m") + "\ngarbage\n" + `{"torn`,
	})
	s.writeBare(0, map[string]string{"r": record("r") + "\n", "x.tmp": record("held") + "\n"})
	s.start()
	s.until("done with sweeping", func() bool { return s.janitorFiles() == 5 })
	s.untilSweepIsIdle()
	s.kill()
	got := s.stored()
	slices.Sort(got.pending)
	checkTexts(t, "queued", got.pending, []string{record("a1"), record("a2"), record("b"), record("long"), record("m"), record("r")})
	checkTexts(t, "dead", got.dead, []string{"garbage"})
	checkTexts(t, "partial", got.partial, []string{`{"torn`})
	for i, label := range got.labels {
		if want := map[bool]uint32{false: alice}[label == "r"]; got.uids[i] != want {
			t.Errorf("%s is of user %d", label, got.uids[i])
		}
	}
	if !slices.Contains(got.labels, "d/e/b") {
		t.Errorf("the files are called %q", got.labels)
	}
	checkTexts(t, "left", s.left(), []string{"x.tmp"})
}

// janitorFiles is how many files came from below the mount.
func (s *spool) janitorFiles() int { return int(s.status().Janitor.FilesTotal) }

func (s *spool) untilSweepIsIdle() {
	s.t.Helper()
	s.until("done with sweeping", func() bool { return s.status().Janitor.WaitingFiles == 0 })
}

// TestSweep_Stragglers proves the bare directory: a process that was in it before
// the mount goes on writing there, and what it writes arrives; what it keeps open
// arrives when it is closed; and so after a crash of the daemon, when a dead mount
// hides the directory.
func TestSweep_Stragglers(t *testing.T) {
	s := bareSpool(t)
	straggler := s.newStraggler()
	straggler.do("exec 3> open")
	straggler.do("echo '" + record("open 1") + "' >&3")
	s.start()
	straggler.do("echo '" + record("late") + "' > late")
	straggler.do("echo '" + record("renamed") + "' > r.tmp; mv r.tmp r")
	s.until("aware of the stragglers", func() bool { return s.janitorFiles() == 2 })
	if st := s.status().Janitor; st.WaitingFiles != 1 {
		t.Errorf("the open file is not waited for: %+v", st)
	}
	straggler.do("echo '" + record("open 2") + "' >&3; exec 3>&-")
	s.until("aware of the close", func() bool { return s.janitorFiles() == 3 })
	s.kill()
	straggler.do("echo '" + record("dead") + "' > dead")
	s.start()
	s.until("aware of what was written meanwhile", func() bool { return s.janitorFiles() == 1 })
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, s.stderr)
	}
	got := s.stored()
	slices.Sort(got.pending)
	checkTexts(t, "queued", got.pending, []string{record("dead"), record("late"), record("open 1"), record("open 2"), record("renamed")})
	checkTexts(t, "left", s.left(), nil)
}

// straggler is a shell whose working directory is the bare one.
type straggler struct {
	s   *spool
	in  *os.File
	out *os.File
}

func (s *spool) newStraggler() *straggler {
	s.t.Helper()
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command("bash")
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.dir, inRead, outWrite, outWrite
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	inRead.Close()
	outWrite.Close()
	s.t.Cleanup(func() {
		inWrite.Close()
		cmd.Wait()
		outRead.Close()
	})
	return &straggler{s, inWrite, outRead}
}

// do runs a command and waits until it is done.
func (g *straggler) do(command string) {
	g.s.t.Helper()
	fmt.Fprintf(g.in, "%s\necho done\n", command)
	var said []byte
	for buf := make([]byte, 256); !strings.HasSuffix(string(said), "done\n"); {
		n, err := g.out.Read(buf)
		if err != nil {
			g.s.t.Fatal(err)
		}
		said = append(said, buf[:n]...)
	}
	if string(said) != "done\n" {
		g.s.t.Fatalf("%s: %s", command, said)
	}
}

// TestSweep_Hostile proves the bare directory against its users: while somebody
// swaps files, links and directories under the same names as fast as he can, the
// daemon takes his files and nothing else.
func TestSweep_Hostile(t *testing.T) {
	s := bareSpool(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(record("secret")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.dir, "own"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(s.dir, "own"), 0o777); err != nil { // and not sticky
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", `
		trap 'exit 0' TERM
		for ((i = 0; ; i++)); do
			echo "${RECORD/N/$i}" > g; mv g f
			ln -sf "$SECRET" l 2>/dev/null; mv -T l f 2>/dev/null; mv -T d f 2>/dev/null; rm -rf f d; mkdir -p d
			mkfifo f 2>/dev/null; mv -T f x 2>/dev/null; rm -rf x
			for c in .spoolfs*; do mv "$c" "moved$i" 2>/dev/null; ln -s /etc "$c" 2>/dev/null; rm -rf "$c" "moved$i" 2>/dev/null; done
		done`)
	cmd.Dir = filepath.Join(s.dir, "own")
	cmd.Env = append(os.Environ(), "SECRET="+secret, "RECORD="+record("N"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: alice, Gid: alice}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.start()
	for range 3 {
		before := s.status().Janitor
		s.writeBareUnder(fmt.Sprint("honest", before.FilesTotal))
		s.until("done with another honest file", func() bool { return s.status().Janitor.FilesTotal > before.FilesTotal })
	}
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	s.kill()
	got := s.stored()
	for i, text := range got.pending {
		if strings.Contains(text, "secret") || got.labels[i] != "honest" && strings.HasPrefix(got.labels[i], "own/") && got.uids[i] != alice {
			t.Errorf("%q of user %d was published as %s", text, got.uids[i], got.labels[i])
		}
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != record("secret")+"\n" {
		t.Errorf("the secret is %q, %v", text, err)
	}
	if len(got.dead)+len(got.partial) > 0 {
		t.Errorf("set aside: %q %q", got.dead, got.partial)
	}
}

// writeBareUnder writes a file below the live mount, as one who has a way there.
func (s *spool) writeBareUnder(name string) {
	s.t.Helper()
	tree, err := unix.OpenTree(unix.AT_FDCWD, filepath.Dir(s.dir), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		s.t.Fatal(err)
	}
	defer unix.Close(tree)
	fd, err := unix.Openat(tree, filepath.Base(s.dir)+"/"+name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(record(name)+"\n")); err != nil {
		s.t.Fatal(err)
	}
}
