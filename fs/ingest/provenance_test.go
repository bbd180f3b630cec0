package ingest

import (
	"reflect"
	"testing"

	"spoolfs/queue"
)

// TestAddProvenance: what is known is said, and what the writer says of himself under
// such a name is not believed.
func TestAddProvenance(t *testing.T) {
	o := roof
	o.PID, o.Job = 4242, "1234"
	m := queue.Message{Headers: []queue.Header{
		{Name: "mine", Value: "1"}, {Name: "x-spool-uid", Value: "0"}, {Name: "X-Spool-Job", Value: "forged"},
	}}
	AddProvenance(&m, &o)
	want := []queue.Header{
		{Name: "mine", Value: "1"},
		{Name: "x-spool-host", Value: "n1.example.org"},
		{Name: "x-spool-uid", Value: "1000", JSON: true},
		{Name: "x-spool-gid", Value: "100", JSON: true},
		{Name: "x-spool-user", Value: "ada"},
		{Name: "x-spool-pid", Value: "4242", JSON: true},
		{Name: "x-spool-job", Value: "1234"},
		{Name: "x-spool-ingested-at", Value: "2026-12-01T00:04:05.000000006Z"},
	}
	if !reflect.DeepEqual(m.Headers, want) {
		t.Errorf("got\n%v\nwant\n%v", m.Headers, want)
	}
	unknown := queue.Message{}
	AddProvenance(&unknown, &Origin{GID: -1, Time: roof.Time})
	want = []queue.Header{{Name: "x-spool-uid", Value: "0", JSON: true}, {Name: "x-spool-ingested-at", Value: "2026-12-01T00:04:05.000000006Z"}}
	if !reflect.DeepEqual(unknown.Headers, want) {
		t.Errorf("of an unknown origin: %v", unknown.Headers)
	}
}
