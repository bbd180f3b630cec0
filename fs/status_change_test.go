package fs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// TestStatusTree_Redrive: what was a message goes again as it was; what never was
// one is decoded anew.
func TestStatusTree_Redrive(t *testing.T) {
	r := newRig(t, Options{})
	id := r.dead(1)[0]
	f := r.as(7).mustCreate("f")
	f.writeAt("garbage\n", 0)
	f.close()
	if st := r.move("routes/default/dead", id); !st.Ok() {
		t.Fatal(st)
	}
	for m, err := range r.route.Pending() {
		if err != nil || string(m.ID) != id || m.Reason != "" || m.Attempts != 0 || string(m.Body) != "body" || m.UID != 7 {
			t.Errorf("redriven: %+v, %v", m, err)
		}
	}
	d := r.openDir("routes/default/dead")
	garbage := d.all()[2]
	if st := r.move("routes/default/dead", garbage); st != fuse.Status(syscall.EBADMSG) {
		t.Errorf("garbage moved: %v", st)
	}
	// A newer version may understand it.
	setFormat(r.fs, replaceFormat{r.fs.root.route.format(), "garbage\n", line("x")})
	if st := r.move("routes/default/dead", garbage); !st.Ok() {
		t.Errorf("what is a message now: %v", st)
	}
	if st := r.move("routes/default/dead", garbage); st != fuse.ENOENT {
		t.Errorf("moved twice: %v", st)
	}
	if got, want := r.bodies(), "body"+line("x"); got != want {
		t.Errorf("published %q, want %q", got, want)
	}
	if s := r.stats(); s.Dead != 0 || r.fs.Stats().RedrivenTotal != 2 {
		t.Errorf("left: %+v, %+v", s, r.fs.Stats())
	}
}

// TestStatusTree_Partial: a partial file is its raw content. Moved out it is
// decoded, with the IDs that its lines would have had; removed it is gone.
func TestStatusTree_Partial(t *testing.T) {
	r := newRig(t, Options{})
	f := queue.NewFileID()
	partial := func(line uint32, body string) string {
		m := queue.Message{
			ID: f.MessageID(line), Line: line, File: ".f.tmp", UID: 7, Ingested: time.Unix(1, 0),
			Body: []byte(body), Partial: true, Reason: "torn",
		}
		if err := r.route.Append([]queue.Message{m}); err != nil {
			t.Fatal(err)
		}
		return ".f.tmp." + string(m.ID)
	}
	torn := partial(1, "{")
	tail := partial(3, strings.TrimSuffix(line("3"), "\n"))
	whole := partial(4, line("4")+"garbage\n"+line("6"))
	if got := r.content("partial/" + whole); got != line("4")+"garbage\n"+line("6") {
		t.Errorf("content is %q", got)
	}
	if st := r.move("partial", torn); st != fuse.Status(syscall.EBADMSG) {
		t.Errorf("torn moved: %v", st)
	}
	for _, name := range []string{tail, whole} {
		if st := r.move("partial", name); !st.Ok() {
			t.Errorf("%s moved: %v", name, st)
		}
	}
	var got []string
	for _, list := range []func(func(*queue.Message, error) bool){r.route.Pending(), r.route.Dead()} {
		for m, err := range list {
			got = append(got, fmt.Sprint(m.ID, " ", m.UID, " ", m.File, " ", m.Reason, err))
		}
	}
	want := []string{
		fmt.Sprint(f.MessageID(3), " 7 .f.tmp <nil>"), fmt.Sprint(f.MessageID(4), " 7 .f.tmp <nil>"),
		fmt.Sprint(f.MessageID(6), " 7 .f.tmp <nil>"), fmt.Sprint(f.MessageID(5), " 7 .f.tmp not-json<nil>"),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if st := r.remove("partial", torn); !st.Ok() || r.stats().Partial != 0 {
		t.Errorf("remove: %v, left %+v", st, r.stats())
	}
}

// replaceFormat decodes a text in place of another.
type replaceFormat struct {
	ingest.Format
	from, to string
}

func (f replaceFormat) Decode(data []byte, at ingest.Position) ingest.Result {
	return f.Format.Decode([]byte(strings.ReplaceAll(string(data), f.from, f.to)), at)
}

// TestStatusTree_Control: commands are run if all are known; ctl shows them.
func TestStatusTree_Control(t *testing.T) {
	var ran []string
	failure := errors.New("cannot")
	r := newRig(t, Options{Commands: map[string]Command{
		"one":  {Help: "does one", Run: func() error { ran = append(ran, "one"); return nil }},
		"two":  {Help: "does two", Run: func() error { ran = append(ran, "two"); return nil }},
		"fail": {Help: "fails", Run: func() error { return failure }},
		"with": {Help: "takes arguments", Begin: func(args []string, uid uint32) error {
			ran = append(ran, fmt.Sprint("with ", strings.Join(args, " ")))
			return nil
		}},
	}})
	if got, want := r.content("ctl"), "fail fails\none does one\ntwo does two\nwith takes arguments\n"; got != want {
		t.Errorf("ctl shows %q", got)
	}
	f, st := r.as(0).openNode(r.mustPath("ctl").NodeId, syscall.O_WRONLY)
	if !st.Ok() {
		t.Fatal(st)
	}
	defer f.release()
	for text, want := range map[string]fuse.Status{
		"one\n": fuse.OK, "two one": fuse.OK, "two nonsense": fuse.EINVAL, "fail\n": fuse.EIO, "": fuse.OK,
		"with one x=y\n": fuse.OK, "one with x": fuse.EINVAL, "with x\nnonsense": fuse.EINVAL,
	} {
		ran = nil
		if st := f.writeAt(text, 0); st != want {
			t.Errorf("%q gave %v, want %v", text, st, want)
		}
		if done := strings.Join(ran, " "); st.Ok() != (done == strings.TrimSpace(text)) && done != "" {
			t.Errorf("%q ran %q", text, done)
		}
	}
}

// TestStatusTree_MovedNameStays: mv looks at what it has moved; nobody else sees
// the name, and it goes.
func TestStatusTree_MovedNameStays(t *testing.T) {
	r := newRig(t, Options{})
	id := r.dead(1)[0]
	in := fuse.RenameIn{InHeader: r.as(0).header(r.mustPath("routes/default/dead").NodeId), Newdir: rootNode}
	if st := r.fs.Rename(nil, &in, id, "moved"); !st.Ok() {
		t.Fatal(st)
	}
	if _, st := r.as(0).lookup("moved"); !st.Ok() {
		t.Errorf("who moved it does not see it: %v", st)
	}
	for _, u := range []user{r.as(0).process(7), r.as(7)} {
		if _, st := u.lookup("moved"); st != fuse.ENOENT {
			t.Errorf("another process sees it: %v", st)
		}
	}
	r.pass(2 * graceTime)
	if _, st := r.as(0).lookup("moved"); st != fuse.ENOENT || len(r.fs.nodes) != 0 {
		t.Errorf("it stays: %v, %d nodes", st, len(r.fs.nodes))
	}
}

// TestStatusTree_StoreDoesNotAnswer: what hangs is answered in time and done once.
func TestStatusTree_StoreDoesNotAnswer(t *testing.T) {
	hang := make(chan struct{})
	real := ingest.NewSarracenia(ingest.SarraceniaOptions{})
	r := newRig(t, Options{
		StoreTimeout: 50 * time.Millisecond,
		Format: formatFunc(func(data []byte, at ingest.Position) ingest.Result {
			<-hang
			return real.Decode(data, at)
		}),
	})
	m := queue.Message{ID: queue.NewFileID().MessageID(1), Line: 1, Body: []byte(line("1")), Reason: "not-json"}
	if err := r.route.Append([]queue.Message{m}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if st := r.move("routes/default/dead", string(m.ID)); st != fuse.EIO {
			t.Errorf("move: %v", st)
		}
	}
	if got := r.openDir("routes/default/dead").all(); len(got) != 3 {
		t.Errorf("meanwhile listed %q", got)
	}
	close(hang)
	r.until("moved", func() bool { return r.fs.Stats().RedrivenTotal == 1 })
	r.wantBodies(line("1"))
}
