package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// parseArgs reads a command line, where DIR stands for a directory.
func parseArgs(t testing.TB, dir string, args ...string) (*cli, error) {
	t.Helper()
	c := &cli{}
	parser, err := newParser(c, io.Discard, io.Discard, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "DIR", dir)
	}
	_, err = parser.Parse(args)
	return c, err
}

// TestConfig_Offline: janitor and drain read the daemon's files, of which they
// leave out what they have no use for. A flag comes before the environment, that
// before the file, and that before the default.
func TestConfig_Offline(t *testing.T) {
	const file = "mountpoint: /nowhere\nstore: DIR/store\nbroker: [amqp://feeder@a/, amqps://b/]\nexchange: from-file\n" +
		"topic_prefix: v02.post\nttl: 2d\nwindow: 20\nmax_bytes: 8MiB\nuser_share: 0.25\nrate: 5\npassword_file: /secret\n" +
		"janitor: [DIR/in, DIR/in2]\njanitor_age: 7s\nkeeper: false\nlisten: localhost:1\nlog_level: warn\n"
	dir := configDir(t, nil)
	write(t, filepath.Join(dir, "main.yaml"), strings.ReplaceAll(file, "DIR", dir))
	write(t, filepath.Join(dir, "conf.d/1.yaml"), "topic_prefix: v03.dropin\n")
	t.Setenv("SPOOLFS_RATE", "2.5")
	t.Setenv("SPOOLFS_EXCHANGE", "from-env")
	t.Setenv("SPOOLFS_STORE", "")
	os.Unsetenv("SPOOLFS_STORE")
	for _, command := range []string{"janitor", "drain"} {
		c, err := parseArgs(t, dir, command, "--config=DIR/main.yaml", "--exchange=from-flag", "--window=7")
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		f := &c.Janitor.storeFlags
		if command == "drain" {
			f = &c.Drain.storeFlags
		}
		for _, tt := range []struct {
			key       string
			got, want any
			from      string
		}{
			{"store", f.Store, dir + "/store", dir + "/main.yaml:2"},
			{"broker", strings.Join(f.Broker, "|"), "amqp://feeder@a/|amqps://b/", dir + "/main.yaml:3"},
			{"exchange", f.Exchange, "from-flag", "--exchange"},
			{"topic_prefix", f.TopicPrefix, "v03.dropin", dir + "/conf.d/1.yaml:1"},
			{"ttl", f.TTL, 48 * time.Hour, dir + "/main.yaml:6"},
			{"window", f.Window, 7, "--window"},
			{"max_bytes", int64(f.MaxBytes), int64(8 << 20), dir + "/main.yaml:8"},
			{"user_share", f.UserShare, 0.25, dir + "/main.yaml:9"},
			{"rate", f.Rate, 2.5, "SPOOLFS_RATE"},
			{"password_file", f.PasswordFile, "/secret", dir + "/main.yaml:11"},
			{"log_level", f.LogLevel, "warn", dir + "/main.yaml:16"},
			{"message_limit", int64(f.MessageLimit), int64(16 << 20), originDefault},
		} {
			if tt.got != tt.want || f.origins[tt.key] != tt.from {
				t.Errorf("%s: %s is %v from %s, want %v from %s", command, tt.key, tt.got, f.origins[tt.key], tt.want, tt.from)
			}
		}
		if err := f.check(); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// TestConfig_JanitorDirectories: those of the command line come before those of
// the environment, and these before those of the file.
func TestConfig_JanitorDirectories(t *testing.T) {
	dir := configDir(t, map[string]string{"list.yaml": "janitor: [/a, '/b c']\njanitor_age: 7s\n", "one.yaml": "janitor: /a, b\n", "none.yaml": ""})
	for _, tt := range []struct{ file, env, args, want string }{
		{"list", "", "", "/a|/b c"}, {"one", "", "", "/a, b"}, {"none", "", "", ""},
		{"list", "/from env", "", "/from env"}, {"list", "/from env", "/arg", "/arg"}, {"none", "", "/arg", "/arg"},
	} {
		t.Setenv("SPOOLFS_JANITOR", tt.env)
		if tt.env == "" {
			os.Unsetenv("SPOOLFS_JANITOR")
		}
		c, err := parseArgs(t, dir, append([]string{"janitor", "--config=DIR/" + tt.file + ".yaml"}, strings.Fields(tt.args)...)...)
		if got := strings.Join(c.Janitor.Directories, "|"); err != nil || got != tt.want {
			t.Errorf("%+v: got %q, %v", tt, got, err)
		}
		if want := map[bool]time.Duration{true: 7 * time.Second, false: time.Minute}[tt.file == "list"]; c.Janitor.JanitorAge != want {
			t.Errorf("%+v: the age is %s", tt, c.Janitor.JanitorAge)
		}
	}
}

// TestConfig_OfflineRefused: what is wrong is told with its place, as by mount.
func TestConfig_OfflineRefused(t *testing.T) {
	for line, want := range map[string]string{
		"windw: 5": `main.yaml:5: unknown key "windw", did you mean "window"?`, "limit: 5s": `main.yaml:5: unknown key "limit"`,
		"user_share: 3": "main.yaml:5: user_share: want more than 0", "linger: 0": "main.yaml:5: linger: want more than 0",
		"janitor_age: 0s": "main.yaml:5: janitor_age: want more than 0", "buffer_limit: much": "main.yaml:5: buffer_limit: want a size",
	} {
		dir := configDir(t, nil)
		write(t, filepath.Join(dir, "main.yaml"), goodFile(dir, line+"\n"))
		var said strings.Builder
		env := &environment{ctx: t.Context(), args: []string{"janitor", "--config", dir + "/main.yaml", dir}, stdout: io.Discard, stderr: &said}
		if code := run(env); code != exitConfig || !strings.Contains(said.String(), want) {
			t.Errorf("%s: exit code %d, %s", line, code, &said)
		}
	}
	dir := configDir(t, map[string]string{"main.yaml": "broker: 'stdout:'\n"})
	for _, args := range [][]string{{"drain"}, {"drain", "--to", "/x"}, {"janitor"}, {"janitor", "/x"}} {
		var said strings.Builder
		env := &environment{ctx: t.Context(), args: append(args, "--config", dir+"/main.yaml"), stdout: io.Discard, stderr: &said}
		if code := run(env); code != exitUsage || !strings.Contains(said.String(), "in the configuration") {
			t.Errorf("%q: exit code %d, %s", args, code, &said)
		}
	}
}

// TestImport_TopicPrefix: what is imported into a daemon is decoded as that would.
func TestImport_TopicPrefix(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".status/config"), "topic \ntopic_prefix v02.post\ntopic_prefix.from --topic-prefix\n")
	if got, err := topicPrefixOf(dir); got != "v02.post" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	write(t, filepath.Join(dir, ".status/config"), "topic \n")
	if got, err := topicPrefixOf(dir); err == nil {
		t.Errorf("got %q of a daemon that does not tell", got)
	}
	if _, err := topicPrefixOf(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a daemon: %v", err)
	}
}

// TestImport_StoreTopicPrefix: a retry file that is imported into a store is decoded for
// the prefix of the command line, and for v03 without one: the prefix v02.post makes
// messages of v02.
func TestImport_StoreTopicPrefix(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "diskqueue_post_retry_000")
	write(t, file, `{"pubTime": "20261130T070000", "baseUrl": "http://h", "relPath": "a/b"}`+"\n")
	for prefix, wantType := range map[string]string{"": "application/json", "v03": "application/json", "v02.post": "text/plain"} {
		store := filepath.Join(dir, "store"+prefix)
		args := []string{"import", "--store", store, file}
		if prefix != "" {
			args = append(args, "--topic-prefix", prefix)
		}
		var bundle, said strings.Builder
		for _, args := range [][]string{args, {"export", "--store", store}} {
			if code := run(&environment{ctx: t.Context(), args: args, stdout: &bundle, stderr: &said}); code != exitOK {
				t.Fatalf("%q: exit code %d, %s", args, code, &said)
			}
		}
		if !strings.Contains(bundle.String(), `"content_type":"`+wantType+`"`) {
			t.Errorf("with the prefix %q, want %s:\n%s", prefix, wantType, &bundle)
		}
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
