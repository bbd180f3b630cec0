package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// watchScreen draws "spoolfs status --watch": a pure function of what the daemon
// has said so far. From above: is all well, and if not, what is wrong and what to
// do; the way of the messages; the last minutes; the routes; what is left behind.
type watchScreen struct {
	look
	mountpoint string
	history    history
	now        time.Time

	status *status // the last one
	stale  time.Duration
	lines  []textLine
}

// labelWidth is the column in which values begin.
const labelWidth = 12

// draw returns the lines of the screen.
func (w *watchScreen) draw() []string {
	last, ok := w.history.last()
	if !ok {
		w.status = &status{Mountpoint: w.mountpoint}
		w.title()
		if len(w.history) == 0 {
			w.add(span{"asking the daemon", inkDim})
		} else {
			w.silent(w.history[0].at)
		}
		return w.render(w.lines)
	}
	w.status = last.status
	w.title()
	if newest := w.history[len(w.history)-1]; newest.status == nil {
		w.stale = w.now.Sub(last.at)
		w.silent(last.at)
	} else {
		w.problems()
	}
	w.blank()
	w.flow()
	w.blank()
	w.charts()
	w.blank()
	w.routes()
	w.blank()
	w.leftovers()
	w.blank()
	w.add(span{"q quits", inkDim})
	w.tighten()
	return w.render(w.lines)
}

// tighten takes out empty lines, the last first, until all fits.
func (w *watchScreen) tighten() {
	for i := len(w.lines) - 1; i > 0 && len(w.lines) > w.height; i-- {
		if len(w.lines[i]) == 0 {
			w.lines = slices.Delete(w.lines, i, i+1)
		}
	}
}

func (w *watchScreen) add(spans ...span) { w.lines = append(w.lines, textLine(spans)) }
func (w *watchScreen) blank()            { w.add() }

// row is a label and what stands behind it.
func (w *watchScreen) row(label string, spans ...span) {
	w.lines = append(w.lines, append(textLine{{label, inkDim}}.padded(labelWidth), spans...))
}

// title is the first line: which spool, and when.
func (w *watchScreen) title() {
	left := textLine{{"spoolfs ", inkPlain}, {w.mountpoint, inkBold}}
	right := w.now.Format("15:04:05")
	if w.status.Version != "" {
		right = "up " + age(float64(int(w.status.UptimeSeconds))) + "  " + right
	}
	w.lines = append(w.lines, append(left.padded(w.width-len(right)), span{right, inkDim}))
	w.blank()
}

// silent is shown while the daemon does not answer.
func (w *watchScreen) silent(since time.Time) {
	w.add(span{" NO ANSWER ", inkAlarm}, span{" for " + age(float64(int(w.now.Sub(since).Seconds()))), inkBold})
	for _, text := range wrap(w.history[len(w.history)-1].err, w.width-labelWidth) {
		w.row("", span{text, inkPlain})
	}
	if w.stale > 0 {
		w.row("", span{"below is what was last known", inkDim})
	}
}

// maxProblems bounds the problems that are shown.
const maxProblems = 3

// problems say whether all is well.
func (w *watchScreen) problems() {
	h := w.status.Health
	badge := map[level]span{
		levelOK: {" OK ", inkGood}, levelWarning: {" WARNING ", inkNotice}, levelCritical: {" CRITICAL ", inkAlarm},
	}[h.Level]
	if len(h.Problems) == 0 {
		w.lines = append(w.lines, append(textLine{badge}.padded(labelWidth), span{"all is well", inkPlain}))
		return
	}
	for i, p := range h.Problems {
		if i == maxProblems {
			w.row("", span{fmt.Sprintf("and %d more: spoolfs status --check", len(h.Problems)-i), inkDim})
			break
		}
		head := textLine{{"", inkPlain}}
		if i == 0 {
			head = textLine{badge}
		}
		for j, text := range wrap(p.Text, w.width-labelWidth) {
			if j > 0 {
				head = nil
			}
			w.lines = append(w.lines, append(head.padded(labelWidth), span{text, levelStyle(p.Level)}))
		}
		for _, text := range wrap(w.arrow()+p.Advice, w.width-labelWidth) {
			w.row("", span{text, inkPlain})
		}
	}
}

func (w *watchScreen) arrow() string {
	if w.unicode {
		return "→ "
	}
	return "> "
}

func levelStyle(l level) style {
	if l == levelCritical {
		return "1;31"
	}
	return inkYellow
}

// trendTime is over what time a trend is judged.
const trendTime = 15 * time.Second

// outlook says in words where the queue goes.
func (w *watchScreen) outlook() string {
	n := waiting(w.status)
	from := w.now.Add(-trendTime)
	in, ok := w.history.rate(ingested, from, w.now)
	out, _ := w.history.rate(confirmed, from, w.now)
	net := out - in
	switch {
	case w.stale > 0:
		return "not known"
	case n == 0:
		return "nothing waits"
	case !ok || net < 0.5 && net > -0.5 && in == 0:
		return fmt.Sprintf("%s wait", grouped(n))
	case net > 0.5:
		return "gets shorter, empty in about " + roughly(float64(n)/net)
	case net < -0.5:
		return fmt.Sprintf("grows by %s a second", grouped(uint64(-net+0.5))) + w.fullIn()
	}
	return "goes out as it comes in"
}

// fullIn says when the store is full if it goes on like this, if that is within
// a month.
func (w *watchScreen) fullIn() string {
	growth, ok := w.history.growth(w.now.Add(-trendTime), w.now)
	left := float64(w.status.Queue.FreeBytes) / growth
	if !ok || growth <= 0 || left > 30*24*3600 {
		return ""
	}
	return ", the store is full in about " + roughly(left)
}

// roughly writes a time for people, in one or two units.
func roughly(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
}

// flow is the way of the messages, from the files to the broker.
func (w *watchScreen) flow() {
	q, p, f := w.status.Queue, w.status.Publisher, w.status.FS
	number := func(n uint64, s style) span {
		if n == 0 {
			s = inkPlain
		}
		return span{grouped(n), s}
	}
	w.row("files", span{fmt.Sprintf("%d open, %d held, ", f.OpenFiles, f.HeldFiles), inkPlain}, number(q.Staged, inkBold), span{" messages staged", inkPlain})
	w.row("queue", number(q.Ready, inkBold), span{" ready, ", inkPlain}, number(q.Leased, inkBold), span{" on their way, ", inkPlain},
		number(q.Delayed, inkYellow), span{" delayed", inkPlain}, span{oldest(q), inkBold})
	w.row("trend", span{w.outlook(), inkPlain})
	if full := q.Bytes + q.FreeBytes; full > 0 {
		part := float64(q.Bytes) / float64(full)
		fill := inkPlain
		if part > filling {
			fill = inkRed
		}
		w.row("store", span{w.bar(part, 20), fill}, span{fmt.Sprintf(" %.0f %%, %s of %s", part*100, size(q.Bytes), size(full)), inkPlain})
	}
	w.row("broker", span{p.State, w.stateStyle()}, span{next(p), inkPlain}, span{"  " + cmp.Or(p.ConnectedTo, p.Broker), inkPlain})
	if p.LastError != "" && p.State != "connected" && !w.isShown(p.LastError) {
		w.row("", span{age(float64(int(p.LastErrorSeconds))) + " ago: " + p.LastError, inkPlain})
	}
}

// isShown reports whether a problem says it already.
func (w *watchScreen) isShown(text string) bool {
	for _, p := range w.status.Health.Problems {
		if strings.Contains(p.Text, text) {
			return true
		}
	}
	return false
}

func (w *watchScreen) stateStyle() style {
	switch w.status.Publisher.State {
	case "connected", "idle":
		return inkGreen
	case "connecting":
		return inkPlain
	}
	return inkYellow
}

// charts are the last minutes. They end in the highest value, which is their
// scale.
func (w *watchScreen) charts() {
	const value, peak = 11, 16
	n := max(10, w.width-labelWidth-value-peak)
	step := w.chartStep(n)
	end := w.now.Truncate(step) // or the chart would change at each look
	for _, c := range []struct {
		label, value string
		series       []float64
		style        style
	}{
		{"in /s", w.rateNow(ingested), w.history.rates(ingested, end, n, step), inkCyan},
		{"out /s", w.rateNow(confirmed), w.history.rates(confirmed, end, n, step), inkGreen},
		{"waiting", grouped(waiting(w.status)), w.history.highest(waiting, end, n, step), inkYellow},
	} {
		high := max(0, slices.Max(c.series))
		if c.label == "waiting" { // the last column ends a moment ago
			high = max(high, float64(waiting(w.status)))
		}
		w.row(c.label, span{fmt.Sprintf("%9s  ", c.value), inkBold}, span{w.sparkline(c.series), c.style},
			span{"  max " + grouped(uint64(high+0.5)), inkDim})
	}
	from := roughly((time.Duration(n) * step).Seconds()) + " ago"
	w.row("", span{strings.Repeat(" ", value) + from + strings.Repeat(" ", max(1, n-len(from)-3)) + "now", inkDim})
}

// chartTime is about what a chart shows.
const chartTime = 5 * time.Minute

// chartStep is the time of one of n columns: a second at first, so that what
// happens is seen soon, and more when there is more to show.
func (w *watchScreen) chartStep(n int) time.Duration {
	seen := w.now.Sub(w.history[0].at)
	for _, step := range []time.Duration{time.Second, 2 * time.Second} {
		if seen <= time.Duration(n)*step {
			return step
		}
	}
	return max(2*time.Second, (chartTime / time.Duration(n)).Round(time.Second))
}

// rateTime is over what time a rate of now is measured.
const rateTime = 5 * time.Second

func (w *watchScreen) rateNow(of total) string {
	if w.stale > 0 {
		return "?"
	}
	v, ok := w.history.rate(of, w.now.Add(-rateTime), w.now)
	if !ok {
		return "-"
	}
	if v > 0 && v < 10 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return grouped(uint64(v + 0.5))
}

// routes is a line for each route.
func (w *watchScreen) routes() {
	w.add(span{fmt.Sprintf("%-18s %-11s %11s %9s %7s %8s %9s", "ROUTE", "STATE", "WAITING", "DELAYED", "DEAD", "OLDEST", "OUT/S"), inkDim})
	q, p := w.status.Queue, w.status.Publisher
	age := "-"
	if q.Ready+q.Leased > 0 {
		age = shortAge(time.Duration(q.OldestReadySeconds * float64(time.Second)))
	}
	w.add(span{fmt.Sprintf("%-18s ", defaultRoute), inkPlain}, span{fmt.Sprintf("%-11s", p.State), w.stateStyle()},
		span{fmt.Sprintf(" %11s %9s %7s %8s %9s", grouped(waiting(w.status)), grouped(q.Delayed), grouped(q.Dead), age, w.rateNow(confirmed)), inkPlain})
}

// leftovers is what waits for somebody's hand, and what the daemon has seen.
func (w *watchScreen) leftovers() {
	q, p, f := w.status.Queue, w.status.Publisher, w.status.FS
	w.row("set aside", span{grouped(q.Dead) + " dead, " + grouped(q.Partial) + " partial", map[bool]style{true: inkYellow}[q.Dead+q.Partial > 0]},
		span{dueHint(q), inkDim})
	w.row("since start", span{fmt.Sprintf("%s confirmed, %s sent again, %s rejected, %s returned", grouped(p.ConfirmedTotal), grouped(p.RequeuedTotal), grouped(p.RejectedTotal), grouped(p.ReturnedTotal)), inkPlain})
	w.row("", span{fmt.Sprintf("%s files with %s messages, %s refused", grouped(f.IngestedFilesTotal), grouped(f.IngestedMessagesTotal), grouped(f.RefusedRequestsTotal)), inkPlain})
}

func dueHint(q queueStatus) string {
	switch {
	case q.Dead > 0:
		return "  (spoolfs dead ls)"
	case q.Partial > 0:
		return "  (spoolfs partial ls)"
	}
	return ""
}

// grouped writes a number with commas.
func grouped(n uint64) string {
	text := strconv.FormatUint(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
