package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

// report is all that a run has found, and where: result.json.
type report struct {
	Machine machine  `json:"machine"`
	Mode    string   `json:"mode"`
	Targets []target `json:"targets"`
	Samples []sample `json:"samples"`
}

// resultName is the name of a report's file, chartOf that of a chart.
const resultName = "result.json"

func newReport(o options) *report {
	r := &report{Machine: thisMachine(), Mode: "short"}
	if o.full {
		r.Mode = "full"
	}
	return r
}

// save writes the report. What the last run of a scenario has found stays if this
// one has not run it, and the machine is the same.
func (r *report) save(dir string) error {
	r.Machine.LoadEnd = loadAverage()
	if old, err := loadReport(dir); err == nil && old.Mode == r.Mode && old.Machine.is(r.Machine) {
		r.Samples = append(r.Samples, slices.DeleteFunc(old.Samples, r.has)...)
	}
	r.judge()
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, resultName), append(text, '\n'), 0o644)
}

// has reports whether the scenario of a sample has been run.
func (r *report) has(s sample) bool {
	return slices.ContainsFunc(r.Samples, func(o sample) bool { return o.Scenario == s.Scenario })
}

func loadReport(dir string) (*report, error) {
	text, err := os.ReadFile(filepath.Join(dir, resultName))
	if err != nil {
		return nil, fmt.Errorf("read the results: %w (make bench)", err)
	}
	r := &report{}
	return r, json.Unmarshal(text, r)
}

func (r *report) judge() {
	r.Targets = nil
	for _, t := range targets(r) {
		if t.judge(r) {
			r.Targets = append(r.Targets, t)
		}
	}
}

// values returns a value of a contestant by round.
func (r *report) values(o of) map[int]float64 {
	found := make(map[int]float64)
	for _, s := range r.Samples {
		if v, ok := s.Values[o.value]; ok && s.Scenario == o.scenario && s.Case == o.where && s.Contestant == o.contestant {
			found[s.Round] = v
		}
	}
	return found
}

func (r *report) all(o of) []float64 { return slices.Sorted(maps.Values(r.values(o))) }

// divide divides a by what join makes of b and c, in each round.
func (r *report) divide(a, b, c of, join func(b, c float64) float64) []float64 {
	var found []float64
	bs, cs := r.values(b), r.values(c)
	for round, n := range r.values(a) {
		if bs[round] > 0 && cs[round] > 0 {
			found = append(found, n/join(bs[round], cs[round]))
		}
	}
	return found
}

// row is the medians of a contestant in a case.
type row struct {
	scenario, where, contestant string
	values                      map[string]float64
}

// rows are in the order of the samples' first round.
func (r *report) rows() []row {
	var rows []row
	for _, s := range r.Samples {
		if slices.ContainsFunc(rows, func(o row) bool {
			return o.scenario == s.Scenario && o.where == s.Case && o.contestant == s.Contestant
		}) {
			continue
		}
		w := row{s.Scenario, s.Case, s.Contestant, map[string]float64{}}
		for name := range s.Values {
			if m, ok := over(r.all(of{s.Scenario, s.Case, s.Contestant, name})); ok {
				w.values[name] = m.median
			}
		}
		rows = append(rows, w)
	}
	return rows
}

// print shows medians and targets.
func (r *report) print(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(table, "\n%s\n\nscenario\tcase\tcontestant\tmedians\n", r.Machine)
	for _, row := range r.rows() {
		fmt.Fprintf(table, "%s\t%s\t%s\t", row.scenario, row.where, row.contestant)
		for _, name := range slices.Sorted(maps.Keys(row.values)) {
			fmt.Fprintf(table, "%s %.4g  ", name, row.values[name])
		}
		fmt.Fprintln(table)
	}
	fmt.Fprint(table, "\ntarget\twanted\tmedian\tleast to most\trounds\t\n")
	for _, t := range r.Targets {
		fmt.Fprintf(table, "%s\t%s\t%.3g\t%.3g to %.3g\t%d\t%s\n", t.About, t.wanted(), t.Got, t.Least, t.Most, t.Rounds, t.verdict())
	}
	table.Flush()
}

func (t target) wanted() string {
	if t.AtMost {
		return fmt.Sprintf("at most %.4g", t.Want)
	}
	return fmt.Sprintf("at least %.4g", t.Want)
}

func (t target) verdict() string {
	if t.Met {
		return "met"
	}
	return "not met"
}
