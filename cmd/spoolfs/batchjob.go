package main

import (
	"os"
	"regexp"
)

// batchJobs are the control groups that batch systems make for the processes of a
// job, which they kill when it ends: Slurm, PBS, LSF and HTCondor.
var batchJobs = regexp.MustCompile(`(?m)^[^:]*:[^:]*:.*?/((?:slurm|slurmstepd\.scope)/(?:.*/)?job_\d+|pbs[^/]*/(?:jobid/)?[^/\s]*\d[^/\s]*|lsf/[^/]+/job\.[^/\s]+|htcondor/[^/\s]+)`)

// batchJobIn finds the batch job in the text of a /proc/<pid>/cgroup; empty if
// there is none.
func batchJobIn(cgroup string) string {
	if m := batchJobs.FindStringSubmatch(cgroup); m != nil {
		return m[1]
	}
	return ""
}

// warnOfBatchJob says so if the daemon is part of a job: its end would be ours,
// and leave a dead mount.
func (d *daemon) warnOfBatchJob() {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return // there are no control groups
	}
	if job := batchJobIn(string(text)); job != "" {
		d.log.Warn("the daemon runs inside a batch job and is killed when that ends: start it as a service of the node", "job", job)
	}
}
