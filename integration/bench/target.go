package main

import "fmt"

// target is what was wanted, in terms of samples: a quotient of two of them, or a
// value itself.
type target struct {
	About  string  `json:"about"`
	Want   float64 `json:"want"`
	AtMost bool    `json:"at_most"`
	Got    float64 `json:"got"`
	Least  float64 `json:"least"` // of all rounds
	Most   float64 `json:"most"`
	Rounds int     `json:"rounds"`
	Met    bool    `json:"met"`

	find func(*report) []float64 // a value for each round
}

// of is a value of a contestant.
type of struct{ scenario, where, contestant, value string }

// by divides one by another, in each round.
func by(a, b of) func(*report) []float64 {
	return func(r *report) []float64 {
		var found []float64
		for round, n := range r.values(a) {
			if d := r.values(b)[round]; d > 0 {
				found = append(found, n/d)
			}
		}
		return found
	}
}

func closeRate(writers int, contestant string) of {
	return of{"close", writersCase(writers), contestant, perSecond}
}

func closeTime(writers int, contestant, value string) of {
	return of{"close", writersCase(writers), contestant, value}
}

// targets are those of the benchmark, in the order of the table.
func targets(r *report) []target {
	all := []target{
		{About: "32 writers, no keeper: files a second, of the null file system on go-fuse's server", Want: 1, find: by(closeRate(32, oneProcess), closeRate(32, nullStock))},
		{About: "32 writers: the same with the keeper", Want: 0.9, find: by(closeRate(32, withKeeper), closeRate(32, nullStock))},
		{About: "32 writers, no keeper: of the null file system on our loop with a bare synced put", Want: 0.9, find: by(closeRate(32, oneProcess), closeRate(32, nullOwn))},
		{About: "32 writers in standing directories, no keeper: of the null file system on go-fuse's server in one directory", Want: 1.5, find: by(closeRate(32, spreadOne), closeRate(32, nullStock))},
		{About: "32 writers in standing directories: the same with the keeper", Want: 1.5, find: by(closeRate(32, spreadKeeper), closeRate(32, nullStock))},
	}
	for _, writers := range []int{1, 8, 32} {
		all = append(all,
			target{About: writersCase(writers) + ": files a second, of files with fsync", Want: 1, find: by(closeRate(writers, withKeeper), closeRate(writers, filesSynced))},
			target{About: writersCase(writers) + ": 99th percentile of a file's time, of that with fsync", Want: 1, AtMost: true, find: by(closeTime(writers, withKeeper, p99MS), closeTime(writers, filesSynced, p99MS))})
	}
	all = append(all, target{About: "1 writer: median time of a file, of that with fsync", Want: 1.5, AtMost: true, find: by(closeTime(1, withKeeper, medianMS), closeTime(1, filesSynced, medianMS))})
	return append(append(all, publishTargets()...), outageTargets(r)...)
}

func publishTargets() []target {
	end := func(contestant, value string) of { return of{"end", endCase, contestant, value} }
	all := []target{
		{About: "write to confirm: messages a second, of the slower of null file system and bare client", Want: 0.9, find: slower(end(withKeeper, perSecond), end(nullStock, perSecond), end(bareClient, perSecond))},
		{About: "write to confirm: CPU time of a message, of the sum of null file system with a put and bare client", Want: 1.25, AtMost: true, find: sum(end(withKeeper, cpuUS), end(nullOwn, cpuUS), end(bareClient, cpuUS))},
		{About: "write to confirm: messages a second, of plain files and a loop that posts them", Want: 1, find: by(end(withKeeper, perSecond), end(loopPlain, perSecond))},
	}
	for _, rtt := range []int{1, 20} {
		process := func(contestant string) of { return of{"process", rttCase(rtt), contestant, medianMS} }
		about := fmt.Sprintf("a process with one message, broker %d ms away: time of ", rtt)
		all = append(all,
			target{About: about + "a post, of that of a file", Want: 10, find: by(process(onePost), process(oneFile))},
			target{About: about + "sr3_cpost, of that of a file", Want: 10, find: by(process(oneCPost), process(oneFile))})
	}
	return all
}

// slower divides by the lesser of two, sum by both together.
func slower(a, b, c of) func(*report) []float64 {
	return func(r *report) []float64 { return r.divide(a, b, c, func(b, c float64) float64 { return min(b, c) }) }
}

func sum(a, b, c of) func(*report) []float64 {
	return func(r *report) []float64 { return r.divide(a, b, c, func(b, c float64) float64 { return b + c }) }
}

// outageTargets are for each long backlog that was measured.
func outageTargets(r *report) []target {
	var all []target
	short := of{"outage", messagesCase(shortBacklog), withKeeper, perSecond}
	for _, row := range r.rows() {
		if row.scenario != "outage" || row.where == short.where {
			continue
		}
		long := func(value string) of { return of{"outage", row.where, withKeeper, value} }
		for _, t := range []target{
			{About: "ls, ms", Want: 10, find: one(long(listMS))},
			{About: "status, ms", Want: 20, find: one(long(statusMS))},
			{About: "resident memory of both processes, MiB", Want: 128, find: one(long(memoryMiB))},
			{About: "peak of it until after the drain, MiB", Want: 128, find: one(long(peakMiB))},
			{About: "start, s", Want: 1, find: one(long(startSeconds))},
			{About: "bytes of the store per byte of payload", Want: 0.75, find: one(long(storePerByte))},
			{About: "store after the drain, MiB", Want: smallStore >> 20, find: one(long(storeMiB))},
		} {
			t.About, t.AtMost = "outage of "+row.where+": "+t.About, true
			all = append(all, t)
		}
		all = append(all, target{About: "outage of " + row.where + ": drain rate, of that of 10,000", Want: 0.95, find: byMedian(long(perSecond), short)})
	}
	return all
}

func one(o of) func(*report) []float64 { return func(r *report) []float64 { return r.all(o) } }

// byMedian divides by the median of many.
func byMedian(a, b of) func(*report) []float64 {
	return func(r *report) []float64 {
		below, ok := over(r.all(b))
		if !ok {
			return nil
		}
		found := r.all(a)
		for i := range found {
			found[i] /= below.median
		}
		return found
	}
}

// judge looks whether a target is met; false if nothing was measured for it.
func (t *target) judge(r *report) bool {
	found := t.find(r)
	s, ok := over(found)
	t.Got, t.Least, t.Most, t.Rounds = s.median, s.least, s.most, len(found)
	t.Met = s.median >= t.Want
	if t.AtMost {
		t.Met = s.median <= t.Want
	}
	return ok
}
