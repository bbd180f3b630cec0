package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestLogger_Forms: text for people, JSON for programs, and for the journal
// priorities instead of times.
func TestLogger_Forms(t *testing.T) {
	write := func(opts logOptions) (string, string) {
		var out bytes.Buffer
		e := &events{}
		log := newLogger(opts, &out, e, newLogLimit()).With("route", "default")
		log.Debug("d")
		log.Info("i", "id", "x-1")
		log.Warn("w")
		log.Error("e")
		return out.String(), string(e.text())
	}
	text, kept := write(logOptions{level: slog.LevelInfo, format: "text"})
	if !strings.HasPrefix(text, "time=20") || !strings.Contains(text, "level=INFO msg=i route=default id=x-1\n") || strings.Count(text, "\n") != 3 {
		t.Errorf("text is\n%s", text)
	}
	if strings.Count(kept, "\n") != 3 || !strings.HasPrefix(kept, "time=") {
		t.Errorf("events are\n%s", kept)
	}
	text, _ = write(logOptions{level: slog.LevelWarn, format: "json"})
	var record struct{ Time, Level, Msg, Route string }
	first, _, _ := strings.Cut(text, "\n")
	if err := json.Unmarshal([]byte(first), &record); err != nil || record.Msg != "w" || record.Route != "default" || record.Time == "" {
		t.Errorf("JSON is %v %+v\n%s", err, record, text)
	}
	text, _ = write(logOptions{level: slog.LevelDebug, format: "text", journal: true})
	want := "<7>level=DEBUG msg=d route=default\n<6>level=INFO msg=i route=default id=x-1\n" +
		"<4>level=WARN msg=w route=default\n<3>level=ERROR msg=e route=default\n"
	if text != want {
		t.Errorf("for the journal it is\n%s, want\n%s", text, want)
	}
}

// TestIsJournal: only the stream that systemd has named is the journal's.
func TestIsJournal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	this := fmt.Sprintf("%d:%d", st.Dev, st.Ino)
	if !isJournal(f, this) {
		t.Error("the journal is not known")
	}
	if isJournal(f, "") || isJournal(f, this+"0") || isJournal(&bytes.Buffer{}, this) {
		t.Error("something else is taken for the journal")
	}
}

// TestLogLimit: no kind of line floods the log, and it is said what was left out.
func TestLogLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		limit := newLogLimit()
		log := newLogger(logOptions{level: slog.LevelInfo, format: "text"}, &out, &events{}, limit)
		const seconds, each = 600, 1000
		for range seconds {
			for i := range each {
				log.Warn("message set aside", "id", i)
			}
			time.Sleep(time.Second)
		}
		lines := strings.Count(out.String(), "\n")
		if lines < logBurst+8 || lines > logBurst+10 {
			t.Errorf("%d lines in ten minutes", lines)
		}
		if got, want := limit.total(), uint64(seconds*each-lines); got != want {
			t.Errorf("%d lines were left out, want %d", got, want)
		}
		if !strings.Contains(out.String(), "not_logged=") {
			t.Errorf("nothing is said of what was left out:\n%s", &out)
		}
		log.Warn("something else")
		if !strings.HasSuffix(out.String(), "msg=\"something else\"\n") {
			t.Error("another kind of line is left out")
		}
	})
}

// TestLogLimit_ManyKinds: texts that are all different take no memory without
// bound, and do not flood the log either.
func TestLogLimit_ManyKinds(t *testing.T) {
	limit := newLogLimit()
	logged := 0
	for i := range 100_000 {
		if ok, _ := limit.take(logKind{slog.LevelInfo, fmt.Sprint(i)}, time.Now()); ok {
			logged++
		}
	}
	if len(limit.kinds) > maxKinds+1 || logged > maxKinds+2*logBurst {
		t.Errorf("%d kinds and %d lines", len(limit.kinds), logged)
	}
}
