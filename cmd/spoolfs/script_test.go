package main

import (
	"encoding/json"
	"errors"
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

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/script: the command line against real daemons on real
// mounts. One after the other, as some are about what is mounted at all.
func TestScripts(t *testing.T) {
	root := t.TempDir()
	letThrough(t, root)
	testscript.RunT(serial{t}, testscript.Params{
		Dir: "testdata/script", WorkdirRoot: root, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector would wait a second at each exit
			return os.Chmod(e.WorkDir, 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"mount": cmdMount, "daemon": cmdDaemon, "exits": cmdExits, "nobody": cmdNobody,
			"until": cmdUntil, "json": cmdJSON, "find": cmdFind, "records": cmdRecords,
		},
	})
}

// letThrough lets other users reach the mounts and the program.
func letThrough(t *testing.T, dir string) {
	t.Helper()
	program, err := exec.LookPath("spoolfs")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Dir(program)} {
		for ; path != os.TempDir() && path != "/"; path = filepath.Dir(path) {
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// serial is a testing.T whose subtests do not run side by side.
type serial struct{ *testing.T }

func (serial) Parallel()       {}
func (s serial) Verbose() bool { return testing.Verbose() }
func (s serial) Run(name string, f func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { f(serial{t}) })
}

// scriptDaemon is a daemon of a script.
type scriptDaemon struct {
	cmd  *exec.Cmd
	done chan struct{}
	log  string
}

var daemons = map[string]*scriptDaemon{} // by the path of the mountpoint; scripts run one after the other

// cmdMount: mount NAME [flags]. Mounts a spool on $WORK/NAME with the store
// NAME.store, and waits until it is ready. Nobody answers at its broker, unless
// the flags name another.
func cmdMount(ts *testscript.TestScript, neg bool, args []string) {
	mountpoint := ts.MkAbs(args[0])
	if err := os.Mkdir(mountpoint, 0o755); !errors.Is(err, os.ErrExist) { // it may be a dead mount
		ts.Check(err)
	}
	d := &scriptDaemon{done: make(chan struct{}), log: mountpoint + ".log"}
	log, err := os.Create(d.log)
	ts.Check(err)
	defer log.Close()
	flags := []string{"mount", "--store", mountpoint + ".store", "--exchange", "xs_test"}
	if !strings.Contains(strings.Join(args, " "), "--broker") {
		flags = append(flags, "--broker", "amqp://guest:guest@127.0.0.1:1/")
	}
	d.cmd = exec.Command("spoolfs", append(append(flags, args[1:]...), mountpoint)...)
	d.cmd.Stderr = log
	d.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	ts.Check(d.cmd.Start())
	go func() {
		defer close(d.done)
		_ = d.cmd.Wait() // its exit code is looked at by "daemon NAME exits"
	}()
	daemons[mountpoint] = d
	ts.Defer(func() { d.end(ts) })
	await(ts, "ready", func() bool {
		select {
		case <-d.done:
			ts.Fatalf("the daemon ended:\n%s", ts.ReadFile(d.log))
		default:
		}
		return strings.Contains(ts.ReadFile(d.log), "msg=ready")
	})
}

func (d *scriptDaemon) end(ts *testscript.TestScript) {
	_ = d.cmd.Process.Kill() // it may have ended
	<-d.done
	_ = unmountSpools() // what is left is met by the next script
	text, _ := os.ReadFile(d.log)
	if strings.Contains(string(text), "DATA RACE") {
		ts.Fatalf("%s", text)
	}
}

// cmdDaemon: daemon NAME stop|cont|kill|exits CODE.
func cmdDaemon(ts *testscript.TestScript, neg bool, args []string) {
	d := daemons[ts.MkAbs(args[0])]
	switch args[1] {
	case "stop":
		// The keeper first: it would replace a worker that is stopped.
		ts.Check(d.cmd.Process.Signal(syscall.SIGSTOP))
		d.signalWorkers(syscall.SIGSTOP)
		await(ts, "stopped", func() bool {
			return strings.Contains(ts.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid)), ") T ")
		})
	case "cont":
		d.signalWorkers(syscall.SIGCONT)
		ts.Check(d.cmd.Process.Signal(syscall.SIGCONT))
	case "kill":
		workers := d.signalWorkers(0)
		ts.Check(d.cmd.Process.Kill())
		<-d.done
		await(ts, "dead", func() bool { // the worker a moment later
			for _, pid := range workers {
				if syscall.Kill(pid, 0) == nil && parentOf(pid) != 0 {
					return false
				}
			}
			return true
		})
	case "exits":
		select {
		case <-d.done:
		case <-time.After(time.Minute):
			ts.Fatalf("the daemon does not end")
		}
		if got := strconv.Itoa(d.cmd.ProcessState.ExitCode()); got != args[2] {
			ts.Fatalf("the daemon exited with %s:\n%s", got, ts.ReadFile(d.log))
		}
	}
}

// signalWorkers sends a signal to the children of the daemon, which a keeper has.
func (d *scriptDaemon) signalWorkers(s syscall.Signal) (workers []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if parentOf(pid) == d.cmd.Process.Pid {
			_ = syscall.Kill(pid, s) // it may just have ended
			workers = append(workers, pid)
		}
	}
	return workers
}

// parentOf is the parent of a process; 0 if that is no more.
func parentOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 2 || fields[0] == "Z" {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// await waits for a condition.
func await(ts *testscript.TestScript, what string, cond func() bool) {
	deadline := time.After(time.Minute)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !cond() {
		select {
		case <-ticker.C:
		case <-deadline:
			ts.Fatalf("not %s within a minute", what)
		}
	}
}

// exitCode runs a command and returns its exit code.
func exitCode(ts *testscript.TestScript, args []string) int {
	err := ts.Exec(args[0], args[1:]...)
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode()
	}
	ts.Check(err)
	return 0
}

// cmdExits: exits CODE command...
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if got := strconv.Itoa(exitCode(ts, args[1:])); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// cmdNobody: nobody CODE command... runs it as a user without rights.
func cmdNobody(ts *testscript.TestScript, neg bool, args []string) {
	as := []string{args[0], "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"}
	cmdExits(ts, neg, append(as, args[1:]...))
}

// cmdUntil: until PATTERN command... runs it until its output matches.
func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	pattern := regexp.MustCompile(args[0])
	await(ts, "matched", func() bool {
		_ = exitCode(ts, args[1:])
		return pattern.MatchString(ts.ReadFile("stdout"))
	})
}

// cmdJSON: json KEY WANT... compares values of the JSON that was printed last;
// keys have dots between them.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	var all any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &all))
	for ; len(args) > 1; args = args[2:] {
		v := all
		for key := range strings.SplitSeq(args[0], ".") {
			object, ok := v.(map[string]any)
			if !ok {
				ts.Fatalf("no %s", args[0])
			}
			v = object[key]
		}
		if got := fmt.Sprint(v); got != args[1] {
			ts.Fatalf("%s is %s, want %s", args[0], got, args[1])
		}
	}
}

// cmdFind: find VARIABLE REGEXP sets it to the first match in stdout.
func cmdFind(ts *testscript.TestScript, neg bool, args []string) {
	found := regexp.MustCompile(args[1]).FindString(ts.ReadFile("stdout"))
	if found == "" {
		ts.Fatalf("no match")
	}
	ts.Setenv(args[0], found)
}

// cmdRecords: records FILE N writes that many records.
func cmdRecords(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"pubTime": "20261130T070000", "baseUrl": "http://h", "relPath": "a/b/%d"}`+"\n", i)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o644))
}
