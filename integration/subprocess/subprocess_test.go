package subprocess

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is the parent that dies, when it is asked to be one.
func TestMain(m *testing.M) {
	if os.Getenv("SPOOLFS_TEST_PARENT") == "" {
		os.Exit(m.Run())
	}
	c, err := Start(exec.Command("sleep", "1000"), syscall.SIGKILL)
	if err != nil {
		os.Exit(1)
	}
	os.Stdout.WriteString(strconv.Itoa(c.Process.Pid) + "\n")
	<-c.Done()
}

// TestStart_Orphan: a child is alone in its group, and ends when its parent is
// killed.
func TestStart_Orphan(t *testing.T) {
	parent := exec.Command("/proc/self/exe")
	parent.Env = append(os.Environ(), "SPOOLFS_TEST_PARENT=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, errPid := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || errPid != nil {
		t.Fatal(err, errPid)
	}
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("the child %d is in the group %d, %v", pid, group, err)
	}
	parent.Process.Kill()
	parent.Wait()
	for deadline := time.Now().Add(time.Minute); runs(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("the child %d outlives its parent", pid)
		}
	}
}

// runs reports whether a process is there, and is no zombie that nobody waits for.
func runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

// TestProcess: what has ended says how.
func TestProcess(t *testing.T) {
	p, err := Start(exec.Command("sleep", "1000"), syscall.SIGTERM)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Alive() {
		t.Error("it is not alive")
	}
	p.KillGroup()
	if err := p.Err(); err == nil || p.Alive() {
		t.Errorf("alive %t, %v", p.Alive(), err)
	}
	p.KillGroup()
	if _, err := Start(exec.Command("/none"), syscall.SIGTERM); err == nil {
		t.Error("what is not there has started")
	}
}
