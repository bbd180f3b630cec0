package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// sample is one measurement of one contestant.
type sample struct {
	Scenario   string             `json:"scenario"`
	Case       string             `json:"case"`
	Contestant string             `json:"contestant"`
	Round      int                `json:"round"`
	Values     map[string]float64 `json:"values"`
}

// The values of samples, with their units.
const (
	perSecond    = "per_second" // files or messages
	seconds      = "seconds"
	medianMS     = "median_ms"
	p99MS        = "p99_ms"
	cpuUS        = "cpu_us"        // of all processes but the broker, per file or message
	serverCPUUS  = "server_cpu_us" // of the server alone
	listMS       = "ls_ms"
	statusMS     = "status_ms"
	memoryMiB    = "memory_mib" // resident, of the keeper and the worker
	peakMiB      = "peak_memory_mib"
	startSeconds = "start_seconds"
	storePerByte = "store_per_payload" // bytes
	storeMiB     = "store_mib"         // after the drain
	backSeconds  = "space_back_seconds"

	// Of scale; rates are of the busiest second, times since the end of the outage.
	peakConnections = "peak_connections"
	dialsAtLoss     = "dials_at_loss"
	dialsAtEnd      = "dials_first_second"
	dialsAfter      = "dials_busiest_second"
	dialsFailed     = "dials_failed"
	peakUnconfirmed = "peak_unconfirmed"
	repeats         = "repeats"
	fairness        = "fairness"
	longestConfirm  = "longest_confirm_seconds"
	halfCaughtUp    = "half_caught_up_seconds"
	allCaughtUp     = "all_caught_up_seconds"
	idealCaughtUp   = "broker_alone_seconds"
	connectionKiB   = "connection_kib" // of the broker's memory
)

// String is a line for people.
func (s sample) String() string {
	var values []string
	for _, name := range slices.Sorted(maps.Keys(s.Values)) {
		values = append(values, fmt.Sprintf("%s %.4g", name, s.Values[name]))
	}
	return fmt.Sprintf("%d %-12s %-46s %s", s.Round+1, s.Case, s.Contestant, strings.Join(values, "  "))
}

// spread is what several rounds found: the median, and the least and most.
type spread struct{ median, least, most float64 }

// over makes a spread; false without values.
func over(values []float64) (spread, bool) {
	if len(values) == 0 {
		return spread{}, false
	}
	sorted := slices.Sorted(slices.Values(values))
	return spread{median(sorted), sorted[0], sorted[len(sorted)-1]}, true
}

// median is the middle of sorted values, or between the two in the middle.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
