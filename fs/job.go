package fs

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// jobCgroups find the batch job in the path of a control group, which no user can
// forge: of Slurm, OpenPBS, Torque, LSF, Grid Engine and OAR.
var jobCgroups = []*regexp.Regexp{
	regexp.MustCompile(`slurm.*/job_([0-9]+)(?:/|$)`),
	regexp.MustCompile(`/pbs[a-z_]*\.service/jobid/([^/]+)`),
	regexp.MustCompile(`/(?:pbspro|torque)/([0-9][^/]*)`),
	regexp.MustCompile(`/lsf/[^/]+/job\.([^./]+)\.`),
	regexp.MustCompile(`/(?:UGE|SGE|sge)/([0-9]+)`),
	regexp.MustCompile(`/oar(?:\.slice)?/[^/]*_([0-9]+)(?:/|$)`),
}

// jobVariables name the batch job in the environment of its processes. JOB_ID is
// Grid Engine's if there is a variable of its name beside it.
var jobVariables = []string{
	"SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "LSB_JOBID", "OAR_JOB_ID", "FLUX_JOB_ID", "COBALT_JOBID", "JOB_ID",
}

// Bounds of what is read of a process, in bytes, and of the id of a job.
const (
	maxCgroupFile  = 64 << 10
	maxEnvironment = 1 << 20
	maxJob         = 128
)

// job is the batch job that a process belongs to, or "": from its control group, or
// from its environment, which only root and who may trace it can read.
func (p process) job() string {
	if p == 0 {
		return ""
	}
	if job := jobOfCgroup(p.read("cgroup", maxCgroupFile)); job != "" {
		return job
	}
	return jobOfEnvironment(p.read("environ", maxEnvironment))
}

// read returns a file of a process, as far as it can be read.
func (p process) read(name string, limit int64) []byte {
	f, err := os.Open(fmt.Sprintf("/proc/%d/%s", p, name))
	if err != nil {
		return nil
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, limit))
	return text
}

// jobOfCgroup reads /proc/<pid>/cgroup: lines of a number, controllers, and a path.
func jobOfCgroup(text []byte) string {
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) < 3 {
			continue
		}
		for _, pattern := range jobCgroups {
			if found := pattern.FindStringSubmatch(parts[2]); found != nil && isJob(found[1]) {
				return found[1]
			}
		}
	}
	return ""
}

// jobOfEnvironment reads /proc/<pid>/environ: NAME=VALUE, with NULs between.
func jobOfEnvironment(text []byte) string {
	values := map[string]string{}
	for entry := range bytes.SplitSeq(text, []byte{0}) {
		if name, value, ok := strings.Cut(string(entry), "="); ok {
			if _, seen := values[name]; !seen { // as getenv(3)
				values[name] = value
			}
		}
	}
	for _, name := range jobVariables {
		if _, gridEngine := values["SGE_TASK_ID"]; name == "JOB_ID" && !gridEngine {
			continue
		}
		if isJob(values[name]) {
			return values[name]
		}
	}
	return ""
}

// isJob reports whether a text can be the id of a job, since users can put anything
// into their environment.
func isJob(text string) bool {
	return text != "" && len(text) <= maxJob && strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
