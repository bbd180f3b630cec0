package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// checkReport is what "spoolfs check --json" prints.
type checkReport struct {
	OK       bool
	Findings []struct {
		Check, State, Text, Advice string
		Steps                      []string
	}
}

// check runs "spoolfs check" on the store and mountpoint of a spool and returns
// what it prints, and its exit code.
func (s *spool) check(args ...string) (string, int) {
	s.t.Helper()
	cmd := exec.CommandContext(limit(s.t, time.Minute), plainBinary, append(append([]string{"check", "--config=/dev/null", "--store", s.store}, args...), s.dir)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// state is the worst state of a check.
func (r checkReport) state(check string) string {
	worst := ""
	for _, f := range r.Findings {
		if f.Check == check && (worst == "" || f.State == "failed" || f.State == "warning" && worst == "ok") {
			worst = f.State
		}
	}
	return worst
}

// TestCheck_Broker: what can be wrong at a broker is told apart, each with what
// to do and an exit code; and nothing is made there.
func TestCheck_Broker(t *testing.T) {
	node := brokerNode(t)
	q := newQueue(t, node)
	s := newSpool(t, plainBinary, "")
	ctl := func(args ...string) {
		t.Helper()
		if out, err := node.Ctl(limit(t, time.Minute), args...); err != nil {
			t.Fatal(args, err, out)
		}
	}
	ctl("add_user", "checker", "pw-of-checker")
	t.Cleanup(func() { node.Ctl(limit(t, time.Minute), "delete_user", "checker") })
	ctl("set_permissions", "checker", "^nothing$", "^nothing$", ".*")
	host := strings.TrimSuffix(strings.SplitN(node.URL(), "@", 2)[1], "/")
	missing := fmt.Sprintf("xs_missing_%d", time.Now().UnixNano())
	for _, tt := range []struct {
		name, broker, exchange string
		code                   int
		state, steps, advice   string
	}{
		{"good", node.URL(), q.Exchange, 0, "ok", "credentials resolve connect login vhost exchange", ""},
		{"no such host", "amqp://u:pw@no-such-host.invalid/", "x", 69, "failed", "credentials resolve", "resolv.conf"},
		{"nobody listens", "amqp://u:pw@127.0.0.1:1/", "x", 69, "failed", "credentials resolve connect", "host, port"},
		{"no password", "amqp://u@" + host + "/", "x", 77, "failed", "credentials", "file of the password"},
		{"wrong password", "amqp://guest:wrong-pw@" + host + "/", "x", 77, "failed", "credentials resolve connect login", "user and password"},
		{"wrong vhost", node.URL() + "nowhere", "x", 77, "failed", "credentials resolve connect login vhost", "virtual host"},
		{"may only read", "amqp://checker:pw-of-checker@" + host + "/", q.Exchange, 0, "ok", "credentials resolve connect login vhost exchange", ""},
		{"no exchange", node.URL(), missing, 0, "warning", "credentials resolve connect login vhost exchange", "configure"},
		{"no AMQP", "amqps://u:pw@" + host + "/", "x", 69, "failed", "credentials resolve connect tls", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, code := s.check("--json", "--broker", tt.broker, "--exchange", tt.exchange)
			var r checkReport
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatalf("%v in\n%s", err, out)
			}
			last := r.Findings[len(r.Findings)-1]
			if code != tt.code || r.OK != (code == 0) || last.Check != "broker" || last.State != tt.state ||
				strings.Join(last.Steps, " ") != tt.steps || !strings.Contains(last.Advice, tt.advice) {
				t.Errorf("code %d, want %d and %q after %s in\n%s", code, tt.code, tt.state, tt.steps, out)
			}
			if strings.Contains(out, "pw") {
				t.Errorf("the password is in\n%s", out)
			}
		})
	}
	if out, err := node.Ctl(limit(t, time.Minute), "list_exchanges", "name"); err != nil || strings.Contains(out, missing) {
		t.Errorf("%v: the check has made the exchange:\n%s", err, out)
	}
}

// TestCheck_Places: store and mountpoint in each state that they can be in.
func TestCheck_Places(t *testing.T) {
	s := newSpool(t, plainBinary, "stdout:")
	look := func(want int, states ...string) checkReport {
		t.Helper()
		out, code := s.check("--json", "--broker=stdout:")
		var r checkReport
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v in\n%s", err, out)
		}
		got := []string{r.state("configuration"), r.state("store"), r.state("mountpoint"), r.state("broker")}
		if code != want || fmt.Sprint(got) != fmt.Sprint(states) {
			t.Errorf("code %d, states %v, want %d, %v in\n%s", code, got, want, states, out)
		}
		return r
	}
	look(0, "ok", "ok", "ok", "skipped")
	if _, err := os.Stat(s.store); err == nil {
		t.Error("the check has made the store")
	}
	s.start()
	r := look(0, "ok", "ok", "ok", "skipped")
	for i, pid := range []int{s.daemonPID(), s.cmd.Process.Pid} { // of the store, and of the mountpoint
		if f := r.Findings[1+i]; !strings.Contains(f.Text, fmt.Sprintf("process %d", pid)) {
			t.Errorf("no process %d in %+v", pid, f)
		}
	}
	s.kill()
	look(0, "ok", "ok", "warning", "skipped") // a dead mount
	s.start()
	if code := s.stop(); code != 0 {
		t.Errorf("code %d\n%s", code, s.stderr)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "stray"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	look(0, "ok", "ok", "warning", "skipped")
	if err := os.WriteFile(filepath.Join(s.store, "FORMAT"), []byte("spoolfs store 99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	look(78, "ok", "failed", "warning", "skipped")
	if err := os.RemoveAll(s.store); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.store, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	look(74, "ok", "failed", "warning", "skipped")
	s.dir = filepath.Join(s.dir, "nowhere")
	look(73, "failed", "", "", "")
}

// TestCheck_Text: people get a line for each check, and what to do.
func TestCheck_Text(t *testing.T) {
	s := newSpool(t, plainBinary, "")
	out, code := s.check("--broker", "amqp://u:pw@127.0.0.1:1/", "--exchange", "x")
	for _, want := range []string{
		"ok       configuration  read /dev/null", "warning  configuration  the password in broker (--broker) can be read",
		"ok       store          ", "ok       mountpoint     ", "failed   broker         amqp://u@127.0.0.1:1/: connect: ", "to do: check host, port",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if code != 69 || strings.Contains(out, "pw@") || strings.Contains(out, "spoolfs:") {
		t.Errorf("code %d\n%s", code, out)
	}
	out, code = s.check("--print", "--broker", "amqp://u:pw@127.0.0.1:1/", "--exchange", "x")
	if code != 0 || !strings.Contains(out, "exchange: x # --exchange\n") || strings.Contains(out, "pw@") {
		t.Errorf("code %d\n%s", code, out)
	}
}
