package main

import "testing"

// TestRestartAmong: the job of a unit tells a restart from a stop.
func TestRestartAmong(t *testing.T) {
	const jobs = "  12 a.service         restart    running\n1345 spoolfs@x.service stop       waiting\n1346 spoolfs.service try-restart running\n"
	for unit, want := range map[string]bool{"a.service": true, "spoolfs.service": true, "spoolfs@x.service": false, "service": false, "b.service": false} {
		if got := restartAmong(jobs, unit); got != want {
			t.Errorf("%s: got %t", unit, got)
		}
	}
}
