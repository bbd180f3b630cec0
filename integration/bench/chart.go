package main

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chart is bars: a group for each case, and in it a bar for each contestant.
type chart struct {
	file, title, unit string
	scenario, value   string
}

var charts = []chart{
	{"close-rate.svg", "Durable closes", "files a second", "close", perSecond},
	{"close-p99.svg", "99 of 100 files take no longer", "ms", "close", p99MS},
	{"close-cpu.svg", "CPU time of all processes", "µs a file", "close", cpuUS},
	{"end-rate.svg", "From the write to the confirm", "messages a second", "end", perSecond},
	{"end-cpu.svg", "CPU time of all processes but the broker", "µs a message", "end", cpuUS},
	{"process.svg", "A process with one message", "ms", "process", medianMS},
	{"outage-drain.svg", "Drain by the length of the backlog", "messages a second", "outage", perSecond},
	{"scale-caught-up.svg", "Until all nodes have caught up after an outage of an hour (simulated)", "s", "scale", allCaughtUp},
	{"scale-dials.svg", "Dials in the busiest second after an outage of an hour (simulated)", "dials", "scale", dialsAfter},
}

// draw draws the charts for which there is something.
func (r *report) draw(dir string) error {
	for _, c := range charts {
		if err := c.draw(r, filepath.Join(dir, c.file)); err != nil {
			return fmt.Errorf("draw %s: %w", c.file, err)
		}
	}
	return nil
}

func (c chart) draw(r *report, path string) error {
	cases, contestants := c.axes(r)
	if len(cases) == 0 {
		return nil
	}
	p := plot.New()
	p.Title.Text, p.Y.Label.Text, p.Y.Min = c.title, c.unit, 0
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(4)
	p.Title.Padding, p.Y.Padding = vg.Points(8), vg.Points(4)
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	p.Add(grid)
	width := vg.Points(240 / float64(len(contestants)))
	for i, name := range contestants {
		bars, err := plotter.NewBarChart(c.heights(r, cases, name), width)
		if err != nil {
			return err
		}
		bars.Color, bars.LineStyle.Width = colour(i), 0
		bars.Offset = width * vg.Length(float64(i)-float64(len(contestants)-1)/2)
		p.Add(bars)
		p.Legend.Add(name, bars)
	}
	p.NominalX(cases...)
	p.X.Min, p.X.Max = -0.5, float64(len(cases))-0.5
	// Room for the legend above the bars.
	p.Y.Max *= 1 + 0.07*float64(len(contestants))
	canvas := vgsvg.New(vg.Points(80+300*float64(len(cases))), 440)
	p.Draw(draw.Crop(draw.New(canvas), margin, -margin, margin, -margin))
	return writeTo(path, canvas)
}

// margin is the room around a chart.
const margin = vg.Length(8)

// colour is a colour for each contestant: there are more than a palette has.
func colour(i int) color.Color {
	if n := len(plotutil.SoftColors); i >= n {
		return plotutil.DarkColors[i%n]
	}
	return plotutil.SoftColors[i]
}

func writeTo(path string, from io.WriterTo) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = from.WriteTo(f)
	return errors.Join(err, f.Close())
}

// axes are the cases and contestants that were measured, in their order.
func (c chart) axes(r *report) (cases, contestants []string) {
	for _, row := range r.rows() {
		if _, ok := row.values[c.value]; row.scenario != c.scenario || !ok {
			continue
		}
		if !slices.Contains(cases, row.where) {
			cases = append(cases, row.where)
		}
		if !slices.Contains(contestants, row.contestant) {
			contestants = append(contestants, row.contestant)
		}
	}
	return cases, contestants
}

// heights are the medians of a contestant, 0 where it has none.
func (c chart) heights(r *report, cases []string, contestant string) plotter.Values {
	heights := make(plotter.Values, len(cases))
	for i, where := range cases {
		if m, ok := over(r.all(of{c.scenario, where, contestant, c.value})); ok {
			heights[i] = m.median
		}
	}
	return heights
}
