package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// measured is a report of a few samples: two rounds in which spoolfs has 1.5 and
// 0.5 times the rate of the null file system, and one without the latter.
func measured() *report {
	r := newReport(options{})
	add := func(contestant string, round int, rate float64) {
		r.Samples = append(r.Samples, sample{"close", "32 writers", contestant, round, map[string]float64{perSecond: rate}})
	}
	add(nullStock, 0, 1000)
	add(withKeeper, 0, 1500)
	add(withKeeper, 1, 1000)
	add(nullStock, 1, 2000)
	add(withKeeper, 2, 7)
	return r
}

// TestReport_Targets: a quotient is that of the same turn, and the middle of all
// counts; what was not measured is no target.
func TestReport_Targets(t *testing.T) {
	r := measured()
	r.judge()
	if len(r.Targets) != 1 {
		t.Fatalf("%d targets: %+v", len(r.Targets), r.Targets)
	}
	got := r.Targets[0]
	if got.Got != 1 || got.Least != 0.5 || got.Most != 1.5 || got.Rounds != 2 || !got.Met {
		t.Errorf("got %+v", got)
	}
	r.Samples[2].Values[perSecond] = 100
	if r.judge(); r.Targets[0].Met {
		t.Errorf("%v is met by %v", r.Targets[0].Want, r.Targets[0].Got)
	}
}

// TestReport_Save: the results of scenarios that were not run again stay, all of
// them, and those of one that was are replaced.
func TestReport_Save(t *testing.T) {
	dir := t.TempDir()
	if err := measured().save(dir); err != nil {
		t.Fatal(err)
	}
	r := newReport(options{})
	r.Samples = []sample{{"end", endCase, bareClient, 0, map[string]float64{perSecond: 1}}}
	for range 2 {
		if err := r.save(dir); err != nil {
			t.Fatal(err)
		}
		if n := len(r.Samples); n != 6 {
			t.Errorf("%d samples", n)
		}
	}
	full := newReport(options{full: true})
	if err := full.save(dir); err != nil {
		t.Fatal(err)
	}
	if n := len(full.Samples); n != 0 {
		t.Errorf("%d samples of short runs are among those of a full one", n)
	}
}

// TestUpdateReadme: the table comes between its lines, and nothing else changes.
func TestUpdateReadme(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "README.md")
	if err := measured().save(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("head\n"+tableBegin+"old\n"+tableEnd+"tail\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code := run(context.Background(), []string{"-out", dir, "-readme", path}, os.Stdout, os.Stderr); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	if !strings.HasPrefix(got, "head\n"+tableBegin) || !strings.HasSuffix(got, tableEnd+"tail\n") || strings.Contains(got, "old") || !strings.Contains(got, "| 1 (0.5 to 1.5) | 2 | met |") {
		t.Errorf("got\n%s", got)
	}
	if err := os.WriteFile(path, []byte("nothing\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code := run(context.Background(), []string{"-out", dir, "-readme", path}, os.Stdout, &strings.Builder{}); code != 1 {
		t.Errorf("without the lines: exit code %d", code)
	}
}

// TestReport_Draw: each chart for which there are samples is drawn, as SVG.
func TestReport_Draw(t *testing.T) {
	dir := t.TempDir()
	if err := measured().draw(dir); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(found) != 1 || filepath.Base(found[0]) != "close-rate.svg" {
		t.Fatalf("%q, %v", found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil || !strings.Contains(string(text), "<svg") || !strings.Contains(string(text), nullStock[:20]) {
		t.Errorf("%v in\n%.500s", err, text)
	}
}

// TestOptions: what cannot be run is refused before anything is built.
func TestOptions(t *testing.T) {
	for _, args := range []string{"-mode=long", "-scenario=open", "-rounds=-1", "-against=/nowhere", "word"} {
		var complaint strings.Builder
		if code := run(context.Background(), []string{args}, os.Stdout, &complaint); code != 64 || complaint.Len() == 0 {
			t.Errorf("%s: exit code %d, %q", args, code, &complaint)
		}
	}
}

// TestInTurns: everybody has each place once.
func TestInTurns(t *testing.T) {
	var got [][]int
	if err := inTurns(t.Context(), 2, 3, func(round, i int) error {
		got = append(got, []int{round, i})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(got)
	if want := "[[0,0],[0,1],[0,2],[1,1],[1,2],[1,0]]"; string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
}
