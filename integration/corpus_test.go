package integration

import (
	"crypto/sha256"
	"encoding/hex"
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

// corpusDir holds files of Sarracenia with the messages that Sarracenia sent.
const corpusDir = "../fs/ingest/testdata/corpus"

// corpusCase is expected.json of a case; its README explains it.
type corpusCase struct {
	Case   string
	File   string
	Assume struct {
		Exchange    string
		TopicPrefix string `json:"post_topicPrefix"`
		Split       int    `json:"post_exchangeSplit"`
	} `json:"assume_config"`
	DeadLetters []struct {
		Line   int
		Reason string
	} `json:"dead_letters"`
	Messages []corpusMessage
}

type corpusMessage struct {
	Line       int
	Exchange   string
	RoutingKey string `json:"routing_key"`
	Properties struct {
		ContentType     string          `json:"content_type"`
		ContentEncoding string          `json:"content_encoding"`
		DeliveryMode    uint8           `json:"delivery_mode"`
		Headers         *map[string]any `json:"headers"`
	}
	Body       *string
	BodySHA256 string `json:"body_sha256"`
}

// corpusCases returns all cases, those of one configuration together.
func corpusCases(t testing.TB) []corpusCase {
	t.Helper()
	paths, err := filepath.Glob(corpusDir + "/*/expected.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	var all []corpusCase
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var c corpusCase
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		c.File = filepath.Join(filepath.Dir(path), c.File)
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b corpusCase) int { return strings.Compare(fmt.Sprint(a.Assume), fmt.Sprint(b.Assume)) })
	return all
}

// corpusRun is a daemon with the configuration of some cases, and a queue that
// gets what goes to any exchange that they name.
type corpusRun struct {
	*spool
	queue rabbit.Queue
	dead  uint64 // set aside so far
}

func newCorpusRun(t testing.TB, c corpusCase) *corpusRun {
	t.Helper()
	node := brokerNode(t)
	r := &corpusRun{queue: newQueue(t, node)}
	for _, exchange := range []string{"xs_tsource", "xs_feeder", "xsplit00", "xsplit01", "xsplit02", "xsplit03"} {
		q := r.queue
		q.Exchange = exchange
		if err := q.Declare(limit(t, time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	r.spool = startSpool(t, node.URL(), "--exchange", c.Assume.Exchange, "--topic-prefix", c.Assume.TopicPrefix,
		"--exchange-split", fmt.Sprint(c.Assume.Split), "--allow-exchange", "xs_*")
	return r
}

// TestMount_CorpusThroughBroker: what a consumer gets of each file of the corpus is
// what Sarracenia would have sent, byte for byte, with message ids that are ours.
// What is no message is set aside and does not hold up the rest (G4).
func TestMount_CorpusThroughBroker(t *testing.T) {
	runs := map[any]*corpusRun{}
	for _, c := range corpusCases(t) {
		r := runs[c.Assume]
		if r == nil {
			r = newCorpusRun(t, c)
			runs[c.Assume] = r
		}
		t.Run(c.Case, func(t *testing.T) {
			r.sh(fmt.Sprintf(`cp %q $M/`, c.File))
			got := consume(t, r.queue, len(c.Messages))
			ids := map[string]bool{}
			for i, want := range c.Messages {
				checkCorpusMessage(t, got[i], deviate(c.Case, want))
				if id := got[i].MessageID; !strings.HasSuffix(id, fmt.Sprintf("-%d", want.Line)) || ids[id] {
					t.Errorf("line %d: message id is %q", want.Line, id)
				}
				ids[got[i].MessageID] = true
			}
			r.untilSent()
			r.dead += uint64(len(c.DeadLetters))
			if q := r.status().Queue; q.Dead+q.Partial != r.dead {
				t.Errorf("%d dead letters and %d partial files in all, want %d", q.Dead, q.Partial, r.dead)
			}
			if names := r.names(); len(names) != 1 {
				t.Errorf("the mount lists %q", names)
			}
		})
	}
}

// deviate is what we send where that is something else.
func deviate(name string, m corpusMessage) corpusMessage {
	p := &m.Properties
	switch {
	case name == "14-py-v02-diskqueue" && m.Line == 5:
		// sr3 forgets the target of a link, so that nobody can make it.
		(*p.Headers)["link"] = "a.txt"
	case p.Headers != nil && len(*p.Headers) == 0:
		// The AMQP library cannot send an empty table; consumers cannot tell.
		p.Headers = nil
	}
	return m
}

// uuid is the id of a wis message, which sr3 draws anew each time.
var uuid = regexp.MustCompile(`"id": "[0-9a-f-]{36}"`)

func checkCorpusMessage(t testing.TB, got rabbit.Delivery, want corpusMessage) {
	t.Helper()
	if got.Exchange != want.Exchange || got.Key != want.RoutingKey {
		t.Errorf("line %d: exchange %q, key %q, want %q, %q", want.Line, got.Exchange, got.Key, want.Exchange, want.RoutingKey)
	}
	p, headers := want.Properties, got.Headers
	if got.ContentType != p.ContentType || got.ContentEncoding != p.ContentEncoding || got.DeliveryMode != p.DeliveryMode {
		t.Errorf("line %d: properties are %+v, want %+v", want.Line, got, p)
	}
	if (headers == nil) != (p.Headers == nil) || p.Headers != nil && !reflect.DeepEqual(headers, *p.Headers) {
		t.Errorf("line %d: headers are %v, want %v", want.Line, headers, p.Headers)
	}
	sum := sha256.Sum256(got.Body)
	switch {
	case want.Body == nil:
		if hex.EncodeToString(sum[:]) != want.BodySHA256 {
			t.Errorf("line %d: a body of %d bytes is another one", want.Line, len(got.Body))
		}
	case uuid.ReplaceAllString(string(got.Body), "") != uuid.ReplaceAllString(*want.Body, ""):
		t.Errorf("line %d: body is\n%q\nwant\n%q", want.Line, got.Body, *want.Body)
	}
}

// subscriber reads messages as sr3 does, with the library that sr3 uses: the body
// by its content type, headers and all. It prints what it makes of each.
const subscriber = `
import amqp, json, sys
host, queue, want = sys.argv[1], sys.argv[2], int(sys.argv[3])
conn = amqp.Connection(host=host, userid="guest", password="guest")
conn.connect()
channel = conn.channel()
while want > 0:
    raw = channel.basic_get(queue)
    if raw is None:
        sys.exit("%d messages are missing" % want)
    body = raw.body
    if type(body) is bytes:
        body = body.decode("utf8")
    content_type = raw.properties["content_type"]
    if content_type == "application/json":
        m = json.loads(body)
    elif content_type == "text/plain":
        m = dict(raw.headers)
        m["pubTime"], m["baseUrl"], m["relPath"] = body.split(" ")[0:3]
    elif content_type == "application/geo+json":
        g = json.loads(body)
        m = g["properties"]
        m["pubTime"], m["baseUrl"], m["relPath"] = m["pubtime"], "", g["links"][0]["href"]
    else:
        sys.exit("content type " + content_type)
    print(json.dumps([raw.delivery_info["routing_key"], m["pubTime"], m["baseUrl"], m["relPath"]]))
    channel.basic_ack(raw.delivery_info["delivery_tag"])
    want -= 1
`

// TestMount_PythonSubscriber: a subscriber that reads as sr3 reads finds the three
// fields that it needs in whatever we publish.
func TestMount_PythonSubscriber(t *testing.T) {
	node := brokerNode(t)
	for _, name := range []string{"01-c-v03-shim-events", "11-py-v03-inline-headers", "14-py-v02-diskqueue", "15-py-wis-diskqueue", "20-v2-retry-arrays"} {
		t.Run(name, func(t *testing.T) {
			cases := corpusCases(t)
			c := cases[slices.IndexFunc(cases, func(c corpusCase) bool { return c.Case == name })]
			r := newCorpusRun(t, c)
			r.sh(fmt.Sprintf(`cp %q $M/`, c.File))
			r.untilSent()
			host := strings.TrimSuffix(strings.TrimPrefix(node.URL(), "amqp://guest:guest@"), "/")
			cmd := exec.CommandContext(limit(t, time.Minute), "/usr/bin/python3", "-c", subscriber, host, r.queue.Name, fmt.Sprint(len(c.Messages)))
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("subscriber: %v", err)
			}
			for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
				var got [4]string
				if err := json.Unmarshal([]byte(line), &got); err != nil {
					t.Fatal(err)
				}
				if got[0] != c.Messages[i].RoutingKey || got[1] == "" || got[3] == "" {
					t.Errorf("message %d was read as %q", i, got)
				}
			}
		})
	}
}
