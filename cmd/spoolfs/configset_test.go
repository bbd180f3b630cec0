package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// configDir is a directory with configuration files, by name, and with a
// mountpoint and a store.
func configDir(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "mnt"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// loadFrom reads a command line with main.yaml of a directory, where DIR stands
// for the directory.
func loadFrom(t testing.TB, dir string, args ...string) (*mountCommand, error) {
	t.Helper()
	args = append([]string{"mount", "--config", filepath.Join(dir, "main.yaml")}, args...)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "DIR", dir)
	}
	return loadMount(args)
}

const goodConfig = "mountpoint: DIR/mnt\nstore: DIR/store\nbroker: amqp://h\nexchange: x\n"

// goodFile is goodConfig with further lines.
func goodFile(dir, more string) string { return strings.ReplaceAll(goodConfig, "DIR", dir) + more }

// TestConfig_Refused: what is wrong in a file is told with file and line, and
// what is wanted; passwords are not.
func TestConfig_Refused(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"windw: 5", `main.yaml:5: unknown key "windw", did you mean "window"?`},
		{"max-bytes: 1G", `main.yaml:5: unknown key "max-bytes", did you mean "max_bytes"?`},
		{"TopicPrefix: v03", `main.yaml:5: unknown key "TopicPrefix", did you mean "topic_prefix"?`},
		{"post_exchange: v03", `main.yaml:5: unknown key "post_exchange", did you mean "exchange"?`},
		{"password: s3cret", `main.yaml:5: unknown key "password", did you mean "password_file"?`},
		{"xyzzy: 1", `main.yaml:5: unknown key "xyzzy": see "spoolfs mount --help"`},
		{"config: /x", `main.yaml:5: unknown key "config"`},
		{"routes: [a]", `main.yaml:5: routes: want routes by their names`},
		{"routes:\n  mirror: [a]", `main.yaml:6: routes.mirror: want keys of its own`},
		{"routes:\n  a/b: {}", `main.yaml:6: route "a/b": a name has at most`},
		{"routes:\n  .a: {}", `main.yaml:6: route ".a": a name has at most`},
		{"routes:\n  default: {}", `main.yaml:6: route "default" is the root of the mount`},
		{"routes:\n  a: {windw: 5}", `main.yaml:6: unknown key "windw" of a route, did you mean "window"?`},
		{"routes:\n  a: {dir: x}", `main.yaml:6: unknown key "dir" of a route`},
		{"routes:\n  a: {xyzzyxyzzy: x}", `main.yaml:6: unknown key "xyzzyxyzzy" of a route, which may have: allow_exchange`},
		{"routes:\n  a: {store: /x}", `main.yaml:6: routes.a.store: it is for the whole spool`},
		{"routes:\n  a: {mountpoint: /x}", `main.yaml:6: routes.a.mountpoint: it is for the whole spool`},
		{"routes:\n  a:\n    window: many", `main.yaml:7: routes.a.window: want a whole number, not "many"`},
		{"routes:\n  a:\n    window: 0", `main.yaml:7: routes.a.window: at least one message`},
		{"routes:\n  a:\n    window: 5\n    window: 6", `main.yaml:8: window: stands in line 7 already`},
		{"routes:\n  a: {}\n  a: {}", `main.yaml:7: a: stands in line 6 already`},
		{"routes:\n  a: {format: raw}", `route a: routing_key: it is missing`},
		{"routes:\n  a: {directory: b/c}", `main.yaml:6: routes.a.directory: want the name of a directory`},
		{"routes:\n  a: {directory: .status}", `main.yaml:6: routes.a.directory: want the name of a directory`},
		{"routes:\n  a: {directory: +7}", `main.yaml:6: routes.a.directory: "+7" is one of the directories`},
		{"routes:\n  a: {directory: x}\n  b: {directory: x}", `main.yaml:7: routes.b.directory: "x" is that of route a already`},
		{"routes:\n  a: {directory: [x]}", `main.yaml:6: routes.a.directory: want a name`},
		{"routes:\n  a: {was: a}", `main.yaml:6: routes.a.was: want the name that the route had before`},
		{"routes:\n  a: {was: default}", `main.yaml:6: routes.a.was: want the name that the route had before`},
		{"routes:\n  a: {was: b}\n  b: {}", `main.yaml:6: routes.a.was: there still is a route b`},
		{"routes:\n  a: {was: c}\n  b: {was: c}", `main.yaml:7: routes.b.was: route a says so, too`},
		{"routes:\n  a: {then: b}\n  b: {else: a}", `circle: a > b > a`},
		{"then: a\nroutes:\n  a: {then: default}", `circle: a > default > a`},
		{"routes:\n  a: {then: [b]}", `route "a" is followed by "b", which there is not`},
		{"else: nowhere", `route "default" is followed by "nowhere", which there is not`},
		{"routes:\n  a: {broker: 'amqp://u:s3cret@h:x/'}", `main.yaml:6: routes.a.broker: want amqp://`},
		{"window: many", `main.yaml:5: window: want a whole number, not "many"`},
		{"window: 1.5", `main.yaml:5: window: want a whole number, not "1.5"`},
		{"window: 0", `main.yaml:5: window: at least one message must be on its way, not 0`},
		{"max_messages: -1", `main.yaml:5: max_messages: want a whole number, not "-1"`},
		{"rate: fast", `main.yaml:5: rate: want a number such as 0.5, not "fast"`},
		{"rate: -1", `main.yaml:5: rate: it cannot be negative`},
		{"rate: nan", `main.yaml:5: rate: it cannot be negative`},
		{"user_share: .nan", `main.yaml:5: user_share: want a number such as 0.5, not ".nan"`},
		{"user_share: nan", `main.yaml:5: user_share: want more than 0 and at most 1`},
		{"tls_skip_verify: maybe", `main.yaml:5: tls_skip_verify: want true or false, not "maybe"`},
		{"ttl: 48", `main.yaml:5: ttl: want a duration such as 30s, 5m, 48h or 7d, not "48"`},
		{"max_bytes: 10GiX", `main.yaml:5: max_bytes: want a size such as 64MiB, 10GiB or 1.5T, or a number of bytes, not "10GiX"`},
		{"max_bytes: -5", `main.yaml:5: max_bytes: want a size`},
		{"max_bytes: 9E", `main.yaml:5: max_bytes: want a size`},
		{"returned: never", `main.yaml:5: returned: want count, retry or dead, not "never"`},
		{"window: [1, 2]", `main.yaml:5: window: want one value, not a list`},
		{"window: {a: 1}", `main.yaml:5: window: want a value, not keys of its own`},
		{"window:", `main.yaml:5: window: has no value`},
		{"allow_exchange:\n- a\n- {b: c}", `main.yaml:7: allow_exchange: want a list of single values`},
		{"allow_exchange: '[a'", `main.yaml:5: allow_exchange: want names, or patterns`},
		{"status_group: no-such-group", `main.yaml:5: status_group: there is no group "no-such-group"`},
		{"exchange: y", `main.yaml:5: exchange: stands in line 4 already`},
		{"window: 5\nwindow: 6", `main.yaml:6: window: stands in line 5 already`},
		{"? [a]\n: b", `main.yaml:5: want a key`},
		{"a\nb", `main.yaml:5: no YAML: `},
		{"window: *s3cret", `main.yaml: no YAML: a value that begins with * must be quoted`},
		{"window: 5\n---\nwindow: 6", `main.yaml: want one document`},
		{"\tlinger: 5s", `no YAML: `},
		{"topic: stdout:", `main.yaml:5: no YAML: a value with a colon in it must be quoted`},
	} {
		dir := configDir(t, nil)
		if err := os.WriteFile(filepath.Join(dir, "main.yaml"), []byte(goodFile(dir, tt.line+"\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := loadFrom(t, dir)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.line, err, tt.want)
		} else if codeOf(err) != exitConfig || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: code %d, %v", tt.line, codeOf(err), err)
		}
	}
}

// TestConfig_AllThatIsWrong: one run shows all mistakes of all files.
func TestConfig_AllThatIsWrong(t *testing.T) {
	dir := configDir(t, map[string]string{
		"main.yaml": "a1: 1\nwindow: x\n", "conf.d/a.yaml": "b1: 1\n", "conf.d/b.yaml": "- list\n", "conf.d/c.yaml": "{",
	})
	_, err := loadFrom(t, dir)
	for _, want := range []string{"main.yaml:1: unknown key", "main.yaml:2: window:", "conf.d/a.yaml:1: unknown key", "conf.d/b.yaml:1: want lines", "conf.d/c.yaml"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

// TestConfig_Precedence: a flag comes before the environment, that before files,
// the later of these before the earlier, and all before the default; and each
// value knows where it comes from.
func TestConfig_Precedence(t *testing.T) {
	dir := configDir(t, map[string]string{
		"conf.d/20.yaml": "exchange: from-20\nwindow: 20\nttl: 2d\n", "conf.d/10.yaml": "exchange: from-10\nwindow: 10\nrate: 10\nmax_bytes: 8388608\n",
		"conf.d/ignored.yml": "nonsense: 1\n",
	})
	main := goodFile(dir, "window: 1\nrate: 1\nconfirm_timeout: 1s\nbroker: [amqp://a/, amqps://b/]\nallow_exchange: xs_a, xs_b\n")
	main = strings.Replace(main, "broker: amqp://h\n", "", 1)
	if err := os.WriteFile(filepath.Join(dir, "main.yaml"), []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SPOOLFS_RATE", "2.5")
	t.Setenv("SPOOLFS_EXCHANGE", "from-env")
	c, err := loadFrom(t, dir, "--exchange", "from-flag", "--linger=1m", "--buffer-limit=1048576")
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, line int) string { return fmt.Sprintf("%s:%d", filepath.Join(dir, name), line) }
	for _, tt := range []struct {
		key       string
		got, want any
		from      string
	}{
		{"exchange", c.Exchange, "from-flag", "--exchange"},
		{"rate", c.Rate, 2.5, "SPOOLFS_RATE"},
		{"window", c.Window, 20, file("conf.d/20.yaml", 2)},
		{"ttl", c.TTL, 48 * time.Hour, file("conf.d/20.yaml", 3)},
		{"max_bytes", int64(c.MaxBytes), int64(8 << 20), file("conf.d/10.yaml", 4)},
		{"buffer_limit", int64(c.BufferLimit), int64(1 << 20), "--buffer-limit"},
		{"linger", c.Linger, time.Minute, "--linger"},
		{"confirm_timeout", c.ConfirmTimeout, time.Second, file("main.yaml", 6)},
		{"returned", c.Returned, "count", originDefault},
		{"broker", strings.Join(c.Broker, "|"), "amqp://a/|amqps://b/", file("main.yaml", 7)},
		{"allow_exchange", len(c.AllowExchange), 2, file("main.yaml", 8)},
		{"mountpoint", c.Mountpoint, dir + "/mnt", file("main.yaml", 1)},
	} {
		if tt.got != tt.want || c.origins[tt.key] != tt.from {
			t.Errorf("%s is %v from %s, want %v from %s", tt.key, tt.got, c.origins[tt.key], tt.want, tt.from)
		}
	}
}

// TestConfig_Places: mountpoint and store may come from anywhere, and a missing
// file is an error only if it was named.
func TestConfig_Places(t *testing.T) {
	dir := configDir(t, map[string]string{"main.yaml": "mountpoint: /in-file\nbroker: 'stdout:'\n"})
	t.Setenv("STATE_DIRECTORY", dir+"/state:/other")
	c, err := loadFrom(t, dir, "DIR/mnt")
	if err != nil || c.Mountpoint != dir+"/mnt" || c.Store != dir+"/state" || c.origins["store"] != "STATE_DIRECTORY" || c.origins["mountpoint"] != originArgument {
		t.Errorf("got %+v, %v", c, err)
	}
	t.Setenv(mountpointEnv, dir+"/mnt")
	if c, err = loadFrom(t, dir); err != nil || c.Mountpoint != dir+"/mnt" || c.origins["mountpoint"] != mountpointEnv {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := loadMount([]string{"mount", "--config", dir + "/missing.yaml"}); err == nil || codeOf(err) != exitConfig || !strings.Contains(err.Error(), "missing.yaml") {
		t.Errorf("a missing file: %v", err)
	}
	if c, err := loadMount([]string{"mount", "--config=/dev/null", "--broker=stdout:"}); err != nil || len(c.files.settings) != 0 {
		t.Errorf("without a file: %v", err)
	}
	if set, err := readConfig(dir+"/missing.yaml", false); err != nil || len(set.files) != 0 {
		t.Errorf("without the default file: %v, %v", set, err)
	}
}

// TestConfig_FromEnvironment: a wrong value in the environment is told by the
// name of the variable.
func TestConfig_FromEnvironment(t *testing.T) {
	dir := configDir(t, nil)
	if err := os.WriteFile(filepath.Join(dir, "main.yaml"), []byte(goodFile(dir, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SPOOLFS_USER_SHARE", "3")
	if _, err := loadFrom(t, dir); err == nil || !strings.HasPrefix(err.Error(), "SPOOLFS_USER_SHARE: want more than 0") || codeOf(err) != exitUsage {
		t.Errorf("got %v", err)
	}
}

// TestSize and durations as they are written.
func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "8388608": 8 << 20, "64MiB": 64 << 20, "64M": 64 << 20, "64mb": 64 << 20, "1.5 GiB": 3 << 29, "1GiB512MiB": 3 << 29, "10G": 10 << 30, "5B": 5,
		"9007199254740993": 9007199254740993, "": -1, "MiB": -1, "-1": -1, "1e3": -1, "1..5G": -1, "8E": -1, "10 apples": -1,
	} {
		got, err := parseSize(text)
		if err != nil {
			got = -1
		}
		if int64(got) != want {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "7d": 168 * time.Hour, "1.5d": 36 * time.Hour, "2w": 336 * time.Hour, "1h30m": 90 * time.Minute, "0": 0,
		"5": -1, "": -1, "d": -1, "nand": -1, "1e99d": -1,
	} {
		got, err := parseDuration(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %s, %v, want %s", text, got, err, want)
		}
	}
}

// TestEffectiveConfig: what is printed has the origins, no password, and makes
// the same configuration when it is read as a file.
func TestEffectiveConfig(t *testing.T) {
	dir := configDir(t, nil)
	more := "allow_exchange: [xs_*, '#x']\nmax_bytes: 1.5G\nrate: 12.5\nttl: 7d\ntls_ca: /etc/a b.pem\ntopic: 'yes'\n"
	file := strings.Replace(goodFile(dir, more), "amqp://h", "amqp://u:s3cret@h/", 1)
	if err := os.WriteFile(filepath.Join(dir, "main.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := loadFrom(t, dir, "--window=7")
	if err != nil {
		t.Fatal(err)
	}
	text, err := effectiveConfig(c)
	if err != nil || strings.Contains(string(text), "s3cret") {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, want := range []string{"window: 7 # --window\n", "returned: count # default\n", fmt.Sprintf("max_bytes: 1GiB512MiB # %s/main.yaml:6\n", dir)} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	again := configDir(t, map[string]string{"main.yaml": string(text)})
	d, err := loadFrom(t, again)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if got, want := string(configLines(d, nil)), string(configLines(c, nil)); strings.ReplaceAll(got, again, dir) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
