package integration

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spoolfs/integration/rabbit"
)

// linkJSON is what status.json says of the link to the broker.
type linkJSON struct {
	State         string
	Broker        string
	ConnectedTo   string `json:"connected_to"`
	LastError     string `json:"last_error"`
	LastCause     string `json:"last_cause"`
	LastAdvice    string `json:"last_advice"`
	RefusedTotal  uint64 `json:"refused_total"`
	RequeuedTotal uint64 `json:"requeued_total"`
	ExpiredTotal  uint64 `json:"expired_total"`
	ReturnedTotal uint64 `json:"returned_total"`
	ServerExpiry  int64  `json:"tls_server_expiry_timestamp_seconds"`
}

func (s *spool) link() linkJSON {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, ".status", "status.json"))
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.stderr)
	}
	var st struct{ Publisher linkJSON }
	if err := json.Unmarshal(text, &st); err != nil {
		s.t.Fatalf("%v in\n%s", err, text)
	}
	return st.Publisher
}

// write puts a file with one record into the mount.
func (s *spool) write(name string) {
	s.t.Helper()
	s.sh(fmt.Sprintf(`echo '%s' > $M/%s`, record(name), name))
}

func ctl(t testing.TB, n *rabbit.Node, args ...string) {
	t.Helper()
	if _, err := n.Ctl(limit(t, time.Minute), args...); err != nil {
		t.Fatal(err)
	}
}

// withUser is a node's URL for another user; without a password if that is
// empty.
func withUser(t testing.TB, raw, user, password string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	if password == "" {
		u.User = url.User(user)
	}
	return u.String()
}

// wantNoSecret checks that a password is in nothing that the program shows: not
// in its log, its status files, or its command line.
func (s *spool) wantNoSecret(secret string) {
	s.t.Helper()
	shown := map[string]string{"log": s.stderr.String(), "stdout": s.stdout.String()}
	paths, err := filepath.Glob(filepath.Join(s.dir, ".status", "*"))
	if err != nil || len(paths) == 0 {
		s.t.Fatalf("status files: %q, %v", paths, err)
	}
	for _, path := range append(paths, fmt.Sprintf("/proc/%d/cmdline", s.cmd.Process.Pid)) {
		if text, err := os.ReadFile(path); err == nil {
			shown[path] = string(text)
		}
	}
	for where, text := range shown {
		if strings.Contains(text, secret) {
			s.t.Errorf("the password is in %s:\n%s", where, text)
		}
	}
}

// TestMount_FaultsAreToldApart: with a broker that is away, a wrong password, a
// wrong vhost, a missing exchange and others the spool mounts and takes files
// all the same, and its status says which it is and what to do (G11, B13).
func TestMount_FaultsAreToldApart(t *testing.T) {
	node := brokerNode(t)
	ctl(t, node, "add_user", "poor", "s3cret")
	ctl(t, node, "set_permissions", "poor", "^$", ".*", "^$")
	t.Cleanup(func() { ctl(t, node, "delete_user", "poor") })
	for name, c := range map[string]struct {
		broker string
		args   []string
		cause  string
		advice string
	}{
		"unreachable":  {"amqp://guest:s3cret@127.0.0.1:1/", nil, "unreachable", "check host, port and network"},
		"no such host": {"amqp://guest:s3cret@nowhere.invalid/", nil, "unreachable", "check host, port and network"},
		"password":     {withUser(t, node.URL(), "guest", "s3cret"), nil, "login-refused", "check user and password"},
		"user":         {withUser(t, node.URL(), "nobody", "s3cret"), nil, "login-refused", "check user and password"},
		"vhost":        {withUser(t, node.URL(), "poor", "s3cret") + "nowhere", nil, "vhost-refused", "check the virtual host"},
		"exchange":     {withUser(t, node.URL(), "poor", "s3cret"), []string{"--exchange", "xs_missing"}, "exchange-missing", "make the exchange"},
		"its type":     {node.URL(), []string{"--exchange", "amq.direct"}, "exchange-differs", "another type"},
		"no password":  {withUser(t, node.URL(), "poor", ""), nil, "credentials", "it is read anew"},
		"no file":      {withUser(t, node.URL(), "poor", ""), []string{"--password-file", "/nonexistent"}, "credentials", "it is read anew"},
		"no TLS":       {strings.Replace(withUser(t, node.URL(), "poor", "s3cret"), "amqp:", "amqps:", 1), nil, "certificate", "--tls-ca"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"--exchange", "xs_example"}, c.args...)
			s := startSpool(t, c.broker, args...)
			s.write("f")
			s.until("aware of it", func() bool { return s.link().State == "waiting" })
			if l := s.link(); l.LastCause != c.cause || !strings.Contains(l.LastAdvice, c.advice) || l.LastError == "" {
				t.Errorf("the status is %+v, want cause %q", l, c.cause)
			}
			if text := s.summary(); !strings.Contains(text, "what to do  ") || !strings.Contains(text, c.advice) {
				t.Errorf("the summary is\n%s", text)
			}
			if !strings.Contains(s.stderr.String(), "cause="+c.cause) {
				t.Errorf("the log has no cause:\n%s", s.stderr)
			}
			s.wantNoSecret("s3cret")
		})
	}
}

// TestMount_Failover: of two brokers one is dead; everything goes to the other,
// and the status says which that is.
func TestMount_Failover(t *testing.T) {
	node := brokerNode(t)
	q := newQueue(t, node)
	for name, list := range map[string][]string{
		"flags": {deadBroker, "--broker", node.URL()},
		"words": {node.URL() + " " + deadBroker},
	} {
		t.Run(name, func(t *testing.T) {
			s := startSpool(t, list[0], append([]string{"--exchange", q.Exchange}, list[1:]...)...)
			s.write("f")
			s.untilSent()
			consume(t, q, 1)
			l := s.link()
			if !strings.Contains(node.URL(), l.ConnectedTo) || l.LastError != "" || len(strings.Fields(l.Broker)) != 2 {
				t.Errorf("the status is %+v", l)
			}
			s.wantNoSecret("secret")
		})
	}
}

// TestMount_Credentials: the password comes from the URL, a file, systemd's
// directory or Sarracenia's credentials.conf, and is shown nowhere (G12). That a
// new one needs no restart is shown by TestLine_LoginChanges.
func TestMount_Credentials(t *testing.T) {
	node := brokerNode(t)
	ctl(t, node, "add_user", "alice", "s3c/re%t")
	ctl(t, node, "set_permissions", "alice", ".*", ".*", ".*")
	t.Cleanup(func() { ctl(t, node, "delete_user", "alice") })
	dir := t.TempDir()
	file, conf := filepath.Join(dir, "password"), filepath.Join(dir, "sr3.conf")
	full := withUser(t, node.URL(), "alice", "s3c/re%t")
	for path, text := range map[string]string{file: "s3c/re%t\n", conf: "# mine\namqp://bob:x@h/\n" + full + "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	short := withUser(t, node.URL(), "alice", "")
	for name, c := range map[string]struct {
		broker string
		args   []string
		env    string
	}{
		"URL":     {full, nil, ""},
		"file":    {short, []string{"--password-file", file}, ""},
		"systemd": {short, nil, dir},
		"conf":    {short, []string{"--credentials", conf}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.env != "" {
				t.Setenv("CREDENTIALS_DIRECTORY", c.env)
			}
			q := newQueue(t, node)
			s := startSpool(t, c.broker, append([]string{"--exchange", q.Exchange}, c.args...)...)
			s.write("f")
			s.untilSent()
			consume(t, q, 1)
			s.wantNoSecret("s3c")
		})
	}
}

// TestMount_AllowExchange: a record may name an exchange that --allow-exchange
// allows; one that is not allowed, or is missing at the broker, waits alone, and
// goes out at once after a restart that allows it.
func TestMount_AllowExchange(t *testing.T) {
	node := brokerNode(t)
	q, other, late := newQueue(t, node), newQueue(t, node), newQueue(t, node)
	s := startSpool(t, node.URL(), "--exchange", q.Exchange, "--allow-exchange", "xs_nobody_made,"+other.Exchange)
	for i, name := range []string{"", other.Exchange, "xs_nobody_made", late.Exchange, ""} {
		text := strings.TrimSuffix(record(fmt.Sprint(i)), "}")
		if name != "" {
			text += fmt.Sprintf(`, "post_exchange": %q`, name)
		}
		s.sh(fmt.Sprintf(`echo '%s}' > $M/f%d`, text, i))
	}
	s.until("done but for two", func() bool {
		st := s.status()
		return st.Publisher.ConfirmedTotal == 3 && st.Queue.Delayed == 2 && st.Queue.Ready+st.Queue.Leased == 0
	})
	for q, want := range map[*rabbit.Queue]int{&q: 2, &other: 1} {
		got, err := q.Drain(limit(t, time.Minute))
		if got = withoutRepeats(t, got); err != nil || len(got) != want {
			t.Errorf("received %d messages of %s, %v, want %d", len(got), q.Name, err, want)
		}
	}
	if l := s.link(); l.RefusedTotal != 2 || l.State != "connected" {
		t.Errorf("the status is %+v", l)
	}
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, s.stderr)
	}
	s.args = append(s.args, "--allow-exchange", late.Exchange)
	start := time.Now()
	s.start()
	consume(t, late, 1)
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestMount_Expiry: --retry-ttl counts from the record's pubTime, and what is
// older is set aside, or dropped and counted.
func TestMount_Expiry(t *testing.T) {
	for policy, dead := range map[string]uint64{"dead": 1, "drop": 0} {
		t.Run(policy, func(t *testing.T) {
			s := startSpool(t, deadBroker, "--exchange", "x", "--retry-ttl", "1h", "--expired", policy)
			s.sh(`echo '{"pubTime": "20200101T000000", "baseUrl": "http://h", "relPath": "a/b"}' > $M/f`)
			s.until("rid of it", func() bool {
				st := s.status()
				return st.FS.IngestedMessagesTotal == 1 && st.Queue.Ready+st.Queue.Leased == 0 && st.Queue.Dead == dead && s.link().ExpiredTotal == 1
			})
		})
	}
}

// TestMount_BrokerKilledUnderLoad: the broker is killed, and each third time
// stopped, while writers go on, again and again (SPOOLFS_CHAOS: 100 times), each
// time after another number of messages. Everything arrives,
// and repeats keep their message id and are fewer than the window (G3).
func TestMount_BrokerKilledUnderLoad(t *testing.T) {
	rounds := 2
	if os.Getenv("SPOOLFS_CHAOS") != "" {
		rounds = 100
	}
	node := brokerNode(t)
	q := newQueue(t, node)
	s := newSpool(t, plainBinary, node.URL(), "--exchange", q.Exchange)
	s.start()
	for round := range rounds {
		w := startWriters(t, s.dir, 4, 50, false)
		target := s.status().Publisher.ConfirmedTotal + uint64(10+(round*37)%300)
		s.until("publishing", func() bool { return s.status().Publisher.ConfirmedTotal >= target })
		if round%3 == 2 {
			stopBroker(t, node)
		} else if err := node.Kill(); err != nil {
			t.Fatal(err)
		}
		s.until("aware of the loss", func() bool { return s.link().State == "waiting" })
		startBroker(t, node)
		s.sh(`echo retry > $M/.status/ctl`) // or each round waits for the backoff
		reports := w.finish()
		s.untilSent()
		got, err := q.Drain(limit(t, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		checkArrivals(t, reports, withoutRepeats(t, got), s.status().Queue.Late)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}
