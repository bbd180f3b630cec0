package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"spoolfs/integration/rabbit"
)

// readmeBlock is a block of commands in the README, whose first mounts a spool, and
// what it says that arrives.
type readmeBlock struct {
	flags []string // of the mount
	sh    []string
	want  []string
}

// readmeBlocks are those that mount a format.
func readmeBlocks(t testing.TB) []readmeBlock {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []readmeBlock
	for _, found := range regexp.MustCompile("(?s)```\n\\$ spoolfs mount (--format .*?) … \\$M\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		out, err := exec.Command("bash", "-c", `printf '%s\n' `+found[1]).Output()
		if err != nil {
			t.Fatal(err)
		}
		b := readmeBlock{flags: lines(string(out))}
		for _, line := range lines(found[2]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				b.sh = append(b.sh, command)
			} else {
				b.want = append(b.want, line)
			}
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// deliveryLines is what has arrived, as the README shows it.
func deliveryLines(t testing.TB, d rabbit.Delivery) []string {
	t.Helper()
	all := []string{
		"routing_key " + d.Key, "content_type " + d.ContentType, "expiration " + d.Expiration,
		fmt.Sprintf("priority %d", d.Priority), "body " + strings.TrimSuffix(string(d.Body), "\n"),
	}
	for name, value := range d.Headers {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, "header."+name+" "+string(text))
	}
	return all
}

// TestMount_ReadmeFormats: what the README shows of formats is what happens.
func TestMount_ReadmeFormats(t *testing.T) {
	blocks := readmeBlocks(t)
	if len(blocks) != 2 {
		t.Fatalf("there are %d blocks in the README", len(blocks))
	}
	node := brokerNode(t)
	for _, b := range blocks {
		t.Run(b.flags[1], func(t *testing.T) {
			q := newQueue(t, node)
			s := startSpool(t, node.URL(), append([]string{"--exchange", q.Exchange}, b.flags...)...)
			s.sh(strings.Join(b.sh, "\n"))
			got := deliveryLines(t, consume(t, q, 1)[0])
			for _, want := range b.want {
				if !slices.Contains(got, want) {
					t.Errorf("want %q among\n%s", want, strings.Join(got, "\n"))
				}
			}
			if len(b.want) < 5 {
				t.Errorf("the README says no more than %q", b.want)
			}
		})
	}
}

// amqpFile has a message with everything, one for an exchange that is allowed, one for
// one that is not, and what is no message.
const amqpFile = `{"routing_key": "a.b", "headers": {"i": -9223372036854775808, "f": 0.1, "s": "é", "t": true, "n": null, "a": [1, {"x": [2.5]}], "CC": ["c.d"]}, ` +
	`"properties": {"content_type": "text/plain", "content_encoding": "utf-8", "correlation_id": "1", "reply_to": "q", "type": "t", "app_id": "p", "timestamp": 1796025600, "delivery_mode": 1}, "body_base64": "AP8="}
{"exchange": "%s", "body": "allowed"}
{"exchange": "not_for_you", "body": "not allowed"}
{"boddy": ""}
{"body": "", "headers": {"n": 1e999}}
{"body": "last"}
`

// TestMount_FormatAMQP proves I13 and I14 on the wire, and that the configuration
// decides to which exchanges lines go (G4).
func TestMount_FormatAMQP(t *testing.T) {
	node := brokerNode(t)
	q := newQueue(t, node)
	allowed := q
	allowed.Exchange = q.Exchange + "_allowed"
	if err := allowed.Declare(limit(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	s := startSpool(t, node.URL(), "--format", "amqp", "--exchange", q.Exchange, "--allow-exchange", "xs_*_allowed")
	s.sh(fmt.Sprintf("cat > $M/f <<'END'\n"+amqpFile+"END", allowed.Exchange))
	got := consume(t, q, 3)
	d := got[0]
	want := map[string]any{
		"i": int64(-9223372036854775808), "f": 0.1, "s": "é", "t": true, "n": nil,
		"a": []any{int64(1), map[string]any{"x": []any{2.5}}}, "CC": []any{"c.d"},
	}
	if text, wantText := fmt.Sprint(d.Headers), fmt.Sprint(want); text != wantText || !reflect.DeepEqual(d.Headers["i"], want["i"]) {
		t.Errorf("headers are %s, want %s", text, wantText)
	}
	if d.Key != "a.b" || string(d.Body) != "\x00\xff" || d.ContentType != "text/plain" || d.ContentEncoding != "utf-8" || d.CorrelationID != "1" ||
		d.ReplyTo != "q" || d.Type != "t" || d.AppID != "p" || d.Timestamp.Unix() != 1796025600 || d.DeliveryMode != 1 || !strings.HasSuffix(d.MessageID, "-1") {
		t.Errorf("got %+v", d)
	}
	if got[1].Exchange != allowed.Exchange || string(got[1].Body) != "allowed" || string(got[2].Body) != "last" {
		t.Errorf("got %+v and %+v", got[1], got[2])
	}
	s.until("done with all but the one that is not allowed", func() bool { return s.status().Queue.Delayed == 1 })
	if dead := s.reasons(); !slices.Equal(dead, []string{`bad-header: "n": 1e999 is beyond a double`, `unknown-key: "boddy"`}) {
		t.Errorf("dead letters are %q", dead)
	}
}

// reasons are those of the dead letters, sorted.
func (s *spool) reasons() []string {
	s.t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.dir, ".status/routes/default/dead/*"))
	if err != nil {
		s.t.Fatal(err)
	}
	var reasons []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, line := range lines(string(text)) {
			if reason, ok := strings.CutPrefix(line, "reason "); ok {
				reasons = append(reasons, reason)
			}
		}
	}
	slices.Sort(reasons)
	return reasons
}

// TestMount_Raw: a file of 50 MiB is one message; what a rename gives a name goes out
// under that; a name that is too long makes a dead letter, which a shorter one saves.
func TestMount_Raw(t *testing.T) {
	node := brokerNode(t)
	q := newQueue(t, node)
	s := startSpool(t, node.URL(), "--format", "raw", "--exchange", q.Exchange, "--routing-key", "${dir}.${name}", "--message-limit", "64MiB", "--header", "user=${user}")
	s.sh(`head -c 52428800 /dev/zero > $M/+7/big.bin`)
	if d := consume(t, q, 1)[0]; len(d.Body) != 50<<20 || d.Key != "big.bin" || d.ContentType != "application/octet-stream" || d.Headers["user"] != "root" {
		t.Errorf("a body of %d bytes, key %q, %q, %v", len(d.Body), d.Key, d.ContentType, d.Headers)
	}
	s.sh(`mkdir -p $M/a/b; echo x > $M/.hidden; mv $M/.hidden $M/a/b/c.txt`)
	if d := consume(t, q, 1)[0]; d.Key != "a.b.c.txt" || d.ContentType != "text/plain" {
		t.Errorf("after a rename: key %q, %q", d.Key, d.ContentType)
	}
	s.sh(`D=$M/$(printf 'd%.0s' {1..100}); mkdir $D; echo long > $D/$(printf 'n%.0s' {1..200})`)
	s.until("done with the dead letter", func() bool { return s.status().Queue.Dead == 1 })
	if dead := s.reasons(); !slices.Equal(dead, []string{"routing-key-too-long: 301 bytes, at most 255"}) {
		t.Errorf("dead letters are %q", dead)
	}
	s.args = append(s.args, "--routing-key", "short.${ext}")
	if code := s.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	s.start()
	s.sh(`mv $M/.status/routes/default/dead/* $M`)
	if d := consume(t, q, 1)[0]; d.Key != "short." || string(d.Body) != "long\n" {
		t.Errorf("the dead letter came as %q with key %q", d.Body, d.Key)
	}
}

// TestMount_Provenance: a message says where it comes from, whatever its line says.
func TestMount_Provenance(t *testing.T) {
	node := brokerNode(t)
	q := newQueue(t, node)
	s := startSpool(t, node.URL(), "--format", "amqp", "--provenance", "--exchange", q.Exchange)
	s.sh(`setpriv --reuid 65534 --regid 65533 --clear-groups env SLURM_JOB_ID=31337 bash -c 'echo "{\"body\": \"$$\", \"headers\": {\"x-spool-uid\": 0, \"mine\": 1}}" > $M/f'`)
	d := consume(t, q, 1)[0]
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(d.Headers["x-spool-ingested-at"]))
	if err != nil || time.Since(at).Abs() > time.Hour {
		t.Errorf("ingested at %v, %v", d.Headers["x-spool-ingested-at"], err)
	}
	delete(d.Headers, "x-spool-ingested-at")
	want := map[string]any{
		"mine": int64(1), "x-spool-host": host, "x-spool-uid": int64(65534), "x-spool-gid": int64(65533), "x-spool-user": "nobody", "x-spool-job": "31337",
	}
	if got := fmt.Sprint(d.Headers["x-spool-pid"]); got != string(d.Body) {
		t.Errorf("process %s, the writer says %s", got, d.Body)
	}
	delete(d.Headers, "x-spool-pid")
	if !reflect.DeepEqual(d.Headers, want) {
		t.Errorf("headers are %v, want %v", d.Headers, want)
	}
}

// TestMount_RawBelow: what is written while nothing is mounted goes out under the key,
// and with the provenance, that it would have had.
func TestMount_RawBelow(t *testing.T) {
	node := brokerNode(t)
	q := newQueue(t, node)
	s := newSpool(t, raceBinary, node.URL(), "--format", "raw", "--provenance", "--exchange", q.Exchange, "--routing-key", "${user}.${dir}.${base}")
	s.sh(`mkdir $M/sensors; echo '{"temp": 21}' > $M/sensors/roof.json`)
	s.start()
	d := consume(t, q, 1)[0]
	if d.Key != "root.sensors.roof" || d.ContentType != "application/json" || string(d.Body) != "{\"temp\": 21}\n" || d.Headers["x-spool-uid"] != int64(0) {
		t.Errorf("got %+v", d)
	}
}
