package queue

import (
	"errors"
	"flag"
	"os"
	"reflect"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// fullMessage has a value in every field.
func fullMessage() Message {
	f := FileID{1, 2, 3, 15: 255}
	return Message{
		ID: f.MessageID(12), Ingested: time.Unix(1764488473, 930390835),
		File: "post_retry.node1.4242", UID: 1000, Line: 14, Attempts: 3,
		Words: []string{"20260101", "", "m\xe9t\xe9o"}, Key: "v03.a", HasKey: true,
		Exchange: "xs_feeder", PubTime: time.Unix(1764488431, 0),
		ContentType: "application/json", ContentEncoding: "utf-8",
		Headers: []Header{{Name: "sum", Value: "s,1234"}, {Name: "empty"}},
		Body:    []byte("{ \"pubTime\" : \"x\" }  \n\x00"), Reason: "not-json: detail",
	}
}

// amqpMessage has what only files of the format amqp can say.
func amqpMessage() Message {
	return Message{
		ID: FileID{4}.MessageID(1), Line: 1,
		Headers: []Header{
			{Name: "a", Value: "1", JSON: true}, {Name: "b", Value: "1"}, {Name: "c", Value: `[{"d": null}]`, JSON: true},
		},
		Properties: []Property{{"type", "t"}, {"priority", "9"}},
	}
}

// TestRecord_Golden: stored records stay readable for ever.
func TestRecord_Golden(t *testing.T) {
	for name, m := range map[string]Message{
		"record-v1": fullMessage(), "record-v1-amqp": amqpMessage(),
		"record-v1-subject": {ID: FileID{5}.MessageID(1), Line: 1, Subject: "\x00about\xff"},
	} {
		name = "testdata/" + name + ".golden"
		if *update {
			if err := os.WriteFile(name, encodeRecord(&m), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		golden, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeRecord(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*got, m) {
			t.Errorf("%s: decoded\n%+v\nwant\n%+v", name, *got, m)
		}
		if string(encodeRecord(&m)) != string(golden) {
			t.Errorf("%s: the encoding has changed: it needs a new version", name)
		}
	}
}

func TestRecord_RoundTrip(t *testing.T) {
	f := NewFileID()
	for _, m := range []Message{
		{},
		{ID: f.MessageID(1), Line: 1},
		{ID: f.MessageID(0), Line: 1},
		{ID: f.MessageID(7)},
		{ID: "parent/route"},
		{ID: ID(f.String() + "-01")}, // not what MessageID makes
		{Headers: []Header{}},
		{Headers: []Header{{JSON: true}}, Properties: []Property{{}}},
		amqpMessage(),
		{HasKey: true},
		{Words: []string{""}},
		{PubTime: time.Unix(-5, 0)},
	} {
		got, err := decodeRecord(encodeRecord(&m))
		if err != nil {
			t.Errorf("%+v: %v", m, err)
		} else if !reflect.DeepEqual(*got, m) {
			t.Errorf("decoded\n%+v\nwant\n%+v", *got, m)
		}
	}
}

// TestRecord_Damage: every single flipped bit and every cut is noticed.
func TestRecord_Damage(t *testing.T) {
	m := fullMessage()
	good := encodeRecord(&m)
	for i := range good {
		for bit := range 8 {
			bad := append([]byte(nil), good...)
			bad[i] ^= 1 << bit
			if _, err := decodeRecord(bad); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("byte %d bit %d: %v", i, bit, err)
			}
		}
		if _, err := decodeRecord(good[:i]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
	}
}

func FuzzRecord_Decode(f *testing.F) {
	m := fullMessage()
	good := encodeRecord(&m)
	f.Add(good[1 : len(good)-4])
	f.Add([]byte{tagHeader, 2, 200, 1})
	f.Add([]byte{tagJSON, 2, 1, 'a', tagProperty, 3, 1, 'a', 'b'})
	f.Add([]byte{tagID, 17, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17})
	f.Fuzz(func(t *testing.T, fields []byte) {
		// The envelope is made right, or the checksum would hide the fields.
		w := newFieldWriter(len(fields))
		w.b = append(w.b, fields...)
		m, err := decodeRecord(w.finish())
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("error of an unknown kind: %v", err)
			}
			return
		}
		again, err := decodeRecord(encodeRecord(m))
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("%+v became %+v, %v", m, again, err)
		}
	})
}

// TestCounters_RoundTrip also holds the layout of the counters.
func TestCounters_RoundTrip(t *testing.T) {
	want := counters{
		next: 1, head: 2, pending: tally{3, 4}, staged: tally{5, 6},
		delayed: tally{7, 1 << 40}, dead: tally{9, 0}, partial: tally{10, 11}, swept: 12,
		drops: drops{13, 14, 15},
	}
	got, err := decodeCounters(want.encode())
	if err != nil || got != want {
		t.Errorf("decoded %+v, %v, want %+v", got, err, want)
	}
}

func TestSpans(t *testing.T) {
	var ss spans
	for _, s := range []span{{5, 7}, {1, 2}, {9, 9}, {7, 8}, {2, 3}, {20, 30}, {4, 6}} {
		ss.add(s)
	}
	if want := (spans{{1, 3}, {4, 8}, {20, 30}}); !reflect.DeepEqual(ss, want) {
		t.Fatalf("spans are %v, want %v", ss, want)
	}
	if got, want := ss.take(4), (spans{{1, 3}, {4, 6}}); !reflect.DeepEqual(got, want) {
		t.Errorf("took %v, want %v", got, want)
	}
	if want := (spans{{6, 8}, {20, 30}}); !reflect.DeepEqual(ss, want) {
		t.Errorf("left are %v, want %v", ss, want)
	}
}
