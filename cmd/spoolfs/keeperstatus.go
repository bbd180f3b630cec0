package main

import (
	"os"
	"time"
)

// keeperStatus is what status.json says of the processes behind a mount.
type keeperStatus struct {
	WorkerPID     int     `json:"worker_pid"`
	WorkerSeconds float64 `json:"worker_seconds"` // that it has been running

	// All of these are 0 or empty without a keeper.
	PID                  int     `json:"pid"`
	Version              string  `json:"version"`
	Binary               string  `json:"binary"` // what an upgrade takes
	Seconds              float64 `json:"seconds"`
	WorkersTotal         int     `json:"workers_total"`
	DeathsTotal          int     `json:"deaths_total"` // that nobody asked for
	LastDeath            string  `json:"last_death"`
	LastGapSeconds       float64 `json:"last_gap_seconds"`
	WorstGapSeconds      float64 `json:"worst_gap_seconds"`
	RefusedTotal         int     `json:"refused_total"` // requests that each worker died of
	UpgradesTotal        int     `json:"upgrades_total"`
	UpgradeFailuresTotal int     `json:"upgrade_failures_total"`
	UpgradeError         string  `json:"upgrade_error"` // of the last failure
}

func (d *daemon) keeperStatus() keeperStatus {
	s := keeperStatus{WorkerPID: os.Getpid(), WorkerSeconds: seconds(time.Since(d.started))}
	if d.worker == nil {
		return s
	}
	k := d.worker.keeperState()
	s.PID, s.Version, s.Binary, s.Seconds = k.PID, k.Version, k.Binary, seconds(time.Since(k.Started))
	s.WorkersTotal, s.DeathsTotal, s.LastDeath, s.RefusedTotal = k.Workers, k.Deaths, k.LastDeath, k.Refused
	s.LastGapSeconds, s.WorstGapSeconds = float64(k.LastGapMS)/1000, float64(k.WorstGapMS)/1000
	s.UpgradesTotal, s.UpgradeFailuresTotal, s.UpgradeError = k.Upgrades, k.UpgradeFails, k.UpgradeError
	return s
}
