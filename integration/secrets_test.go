package integration

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// planted is a place where a password can be given. All passwords have the text
// secret in them.
type planted struct {
	name  string
	args  []string
	env   []string
	files map[string]string
}

const secret = "s3cret"

// places are all places, each with a daemon that uses it; the ones before a place
// in the order of precedence are planted with it. BROKER is the host, DIR the
// directory of the files.
var places = []planted{
	{"flag", []string{"--broker=amqp://u:s3cret-flag@BROKER/"},
		[]string{"SPOOLFS_BROKER=amqp://u:s3cret-env@BROKER/ amqp://u:s3cret/2@BROKER/"},
		map[string]string{"main.yaml": "broker: amqp://u:s3cret-yaml@BROKER/\n", "conf.d/x.yaml": "broker: amqp://u:s3cret-dropin@BROKER/\n"}},
	{"environment", nil, []string{"SPOOLFS_BROKER=amqp://u:s3cret-env@BROKER/ amqp://v:s3cret-env2@BROKER/"},
		map[string]string{"main.yaml": "broker: amqp://u:s3cret-yaml@BROKER/\n"}},
	{"environment with keeper", []string{"--keeper"}, []string{"SPOOLFS_BROKER=amqp://u:s3cret-env@BROKER/"}, map[string]string{"main.yaml": ""}},
	{"file", nil, nil, map[string]string{"main.yaml": "broker: [amqp://u:s3cret-yaml@BROKER/, 'amqp://v:s3cret-yaml2@BROKER/']\n"}},
	{"drop-in", nil, nil, map[string]string{"main.yaml": "", "conf.d/x.yaml": "broker: amqp://u:s3cret-dropin@BROKER/\n"}},
	{"query", nil, nil, map[string]string{"main.yaml": "broker: amqp://u:s3cret-yaml@BROKER/?password=s3cret-query\n"}},
	{"password file", []string{"--broker=amqp://u@BROKER/", "--password-file=DIR/pw"}, nil, map[string]string{"main.yaml": "", "pw": "s3cret-file\n"}},
	{"credentials", []string{"--broker=amqp://u@BROKER/", "--credentials=DIR/cred"}, nil,
		map[string]string{"main.yaml": "", "cred": "amqp://u:s3cret-cred@BROKER/\namqp://x:s3cret-%zz@y\n"}},
	{"credentials without us", []string{"--broker=amqp://u@BROKER/", "--credentials=DIR/cred"}, nil,
		map[string]string{"main.yaml": "", "cred": "amqp://other:s3cret-cred@BROKER/\ns3cret-garbage\n"}},
	{"systemd password", []string{"--broker=amqp://u@BROKER/"}, []string{"CREDENTIALS_DIRECTORY=DIR/systemd"},
		map[string]string{"main.yaml": "", "systemd/password": "s3cret-systemd"}},
	{"systemd credentials", []string{"--broker=amqp://u@BROKER/"}, []string{"CREDENTIALS_DIRECTORY=DIR/systemd"},
		map[string]string{"main.yaml": "", "systemd/credentials.conf": "amqp://u:s3cret-systemd@BROKER/\n"}},
}

// wrongConfigs have a password where a mistake is.
var wrongConfigs = []string{
	"window: 0\nwindw: s3cret\n", "broker: {s3cret: s3cret}\n", "password: s3cret\n", "broker: [s3cret\n", "broker: *s3cret\n", "window: amqp://u:s3cret@x/\n",
}

// TestSecrets: a password that is planted in every place where one can be given
// is in nothing that the program shows: what it prints and logs, the status tree,
// metrics, health and profiles, what the other commands print, and the arguments
// and the environment of its processes (G12).
func TestSecrets(t *testing.T) {
	node := brokerNode(t)
	host := strings.TrimSuffix(strings.SplitN(node.URL(), "@", 2)[1], "/")
	for _, place := range places {
		t.Run(place.name, func(t *testing.T) {
			s := newSpool(t, raceBinary, "")
			dir := filepath.Dir(s.dir)
			fill := strings.NewReplacer("BROKER", host, "DIR", dir)
			for name, text := range place.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(fill.Replace(text)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			socket := filepath.Join(dir, "http")
			s.args = []string{"--config", filepath.Join(dir, "main.yaml"), "--store", s.store, "--exchange=xs_secrets", "--log-level=debug", "--listen=unix:" + socket}
			for _, arg := range place.args {
				s.args = append(s.args, fill.Replace(arg))
			}
			for _, e := range place.env {
				name, value, _ := strings.Cut(e, "=")
				t.Setenv(name, fill.Replace(value))
			}
			s.start()
			s.write("f")
			want := "login-refused"
			if place.name == "credentials without us" {
				want = "credentials"
			}
			s.until("refused", func() bool { return s.link().LastCause != "" })
			if got := s.link().LastCause; got != want {
				t.Errorf("the password was not used: cause %s, want %s", got, want)
			}
			hangUp(t, s)
			shown := s.everythingShown(socket)
			if len(shown) < 25 {
				t.Errorf("only %d things were looked at", len(shown))
			}
			for where, text := range shown {
				if strings.Contains(text, secret) {
					t.Errorf("a password is in %s:\n%.2000q", where, text)
				}
			}
		})
	}
}

// hangUp has the configuration reloaded, once as it is and once with a mistake
// behind the password.
func hangUp(t *testing.T, s *spool) {
	t.Helper()
	c := &configured{spool: s, file: s.args[1]}
	text, err := os.ReadFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	if fault := c.reload(string(text)); fault != "" {
		t.Errorf("the reload failed: %s", fault)
	}
	for _, wrong := range wrongConfigs {
		c.put(wrong)
		for _, args := range [][]string{{}, {"--json"}} {
			out, _ := s.runConfigured("check", args...)
			if strings.Contains(out, secret) || !strings.Contains(out, "main.yaml") {
				t.Errorf("a password, or no place, is in what check %v says:\n%s", args, out)
			}
		}
	}
	wrongConfigs = nil // once will do
	c.reload("windw: 5\nwindow: amqp://u:s3cret@x\n")
	c.put(string(text))
}

// runConfigured runs a command with the flags of the spool.
func (s *spool) runConfigured(command string, args ...string) (string, error) {
	s.t.Helper()
	cmd := exec.CommandContext(limit(s.t, time.Minute), plainBinary, append(append(append([]string{command}, s.args...), args...), s.dir)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// everythingShown is what the program and its commands show, by where it was found.
func (s *spool) everythingShown(socket string) map[string]string {
	s.t.Helper()
	shown := map[string]string{}
	filepath.WalkDir(filepath.Join(s.dir, ".status"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			text, _ := os.ReadFile(path)
			shown[path] = string(text)
		}
		return nil
	})
	for _, args := range [][]string{{"--json"}, {"--print"}} {
		out, _ := s.runConfigured("check", args...)
		shown["check "+strings.Join(args, " ")] = out
	}
	for _, args := range [][]string{{"status"}, {"status", "--json"}, {"mount", "--help"}, {"mount", "--window=amqp://u:s3cret@x"}, {"mount", "/x", "amqp://u:s3cret@x/"}} {
		out, _ := exec.CommandContext(limit(s.t, time.Minute), plainBinary, append(args, s.dir)...).CombinedOutput()
		shown[fmt.Sprint("command ", len(shown))] = string(out)
	}
	for _, path := range []string{"/metrics", "/livez", "/readyz", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2", "/debug/pprof/"} {
		shown[path] = s.get(socket, path)
	}
	for _, pid := range descendants(s.cmd.Process.Pid) {
		for _, file := range []string{"cmdline", "environ", "comm"} {
			path := fmt.Sprintf("/proc/%d/%s", pid, file)
			text, err := os.ReadFile(path)
			if err != nil {
				s.t.Error(err)
			}
			shown[path] = string(text)
		}
	}
	shown["stdout"], shown["stderr"] = s.stdout.String(), s.stderr.String()
	return shown
}

// get fetches from the address of --listen.
func (s *spool) get(socket, path string) string {
	s.t.Helper()
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	r, err := client.Get("http://spoolfs" + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || len(text) == 0 {
		s.t.Errorf("%s: %d bytes, %v", path, len(text), err)
	}
	return string(text)
}

// descendants are a process and all that it, and those, have started.
func descendants(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", all[i]))
		for _, task := range tasks {
			text, _ := os.ReadFile(task)
			for _, word := range strings.Fields(string(text)) {
				if child, err := strconv.Atoi(word); err == nil {
					all = append(all, child)
				}
			}
		}
	}
	return all
}
