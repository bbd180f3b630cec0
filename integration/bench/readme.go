package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// The lines of a file between which the table stands.
const (
	tableBegin = "<!-- bench: begin, written by make bench-readme -->\n"
	tableEnd   = "<!-- bench: end -->\n"
)

// updateReadme writes the table of the results in dir into a file.
func updateReadme(path, dir string) error {
	r, err := loadReport(dir)
	if err != nil {
		return err
	}
	r.judge()
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, begins := strings.Cut(string(text), tableBegin)
	_, tail, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no lines %q and %q", path, strings.TrimSpace(tableBegin), strings.TrimSpace(tableEnd))
	}
	return os.WriteFile(path, []byte(head+tableBegin+r.markdown()+tableEnd+tail), 0o644)
}

// markdown is the part of the report that people compare.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nMeasured with `make bench` (%s counts) on %s.\n", r.Mode, r.Machine)
	b.WriteString("\n| closes a second (median, 99th percentile of one, ms) | 1 writer | 8 writers | 32 writers |\n|---|---|---|---|\n")
	for _, name := range append(slices.Clone(closers), spreadOne, spreadKeeper) {
		if cells := r.closeCells(name); cells != "" {
			fmt.Fprintf(&b, "| %s |%s\n", name, cells)
		}
	}
	b.WriteString("\n| target | wanted | median (least to most) | rounds | |\n|---|---|---|---|---|\n")
	for _, t := range r.Targets {
		fmt.Fprintf(&b, "| %s | %s | %.3g (%.3g to %.3g) | %d | %s |\n", t.About, t.wanted(), t.Got, t.Least, t.Most, t.Rounds, t.verdict())
	}
	b.WriteString("\n")
	return b.String()
}

// closeCells are those of a contestant of closes; empty if it was not measured.
func (r *report) closeCells(name string) string {
	cells := ""
	for _, writers := range []int{1, 8, 32} {
		rate, ok := over(r.all(closeRate(writers, name)))
		middle, _ := over(r.all(closeTime(writers, name, medianMS)))
		tail, _ := over(r.all(closeTime(writers, name, p99MS)))
		if !ok {
			return ""
		}
		cells += fmt.Sprintf(" %.0f (%.2f, %.1f) |", rate.median, middle.median, tail.median)
	}
	return cells
}
