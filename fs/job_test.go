package fs

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestJobOfCgroup(t *testing.T) {
	for text, want := range map[string]string{
		"0::/system.slice/slurmstepd.scope/job_1234/step_0/user/task_0\n":                            "1234",
		"0::/system.slice/node1_slurmstepd.scope/job_77\n":                                           "77",
		"9:cpuset:/\n4:memory:/slurm_node1/uid_1000/job_42/step_batch\n1:name=systemd:/user.slice\n": "42",
		"0::/pbs_jobs.service/jobid/981.pbs01\n":                                                     "981.pbs01",
		"5:memory:/pbspro.service/jobid/12.srv\n":                                                    "12.srv",
		"5:memory:/torque/12.srv/x\n":                                                                "12.srv",
		"0::/lsf/cluster1/job.5150.30111.1690000000\n":                                               "5150",
		"3:freezer:/UGE/3001.1\n":                                                                    "3001",
		"0::/oar/ada_505\n":                                                                          "505",
		"0::/user.slice/user-1000.slice/session-3.scope\n":                                           "",
		"0::/user.slice/job_9\n":                                                                     "", // a user's own
		"0::/system.slice/slurmd.service\n":                                                          "",
		"garbage":                                                                                    "", "": "", "0:": "",
		"0::/pbs_jobs.service/jobid/" + strings.Repeat("1", 200) + "\n": "",
	} {
		if got := jobOfCgroup([]byte(text)); got != want {
			t.Errorf("%q: job %q, want %q", text, got, want)
		}
	}
}

func TestJobOfEnvironment(t *testing.T) {
	for text, want := range map[string]string{
		"A=1\x00SLURM_JOB_ID=5\x00PBS_JOBID=6\x00": "5",
		"PBS_JOBID=6.srv\x00SLURM_JOBID=5\x00":     "5",
		"PBS_JOBID=6.srv\x00":                      "6.srv",
		"LSB_JOBID=7\x00":                          "7",
		"JOB_ID=8\x00":                             "", // anybody's
		"JOB_ID=8\x00SGE_TASK_ID=undefined\x00":    "8",
		"SLURM_JOB_ID=\x00LSB_JOBID=7\x00":         "7",
		"SLURM_JOB_ID=5\x00SLURM_JOB_ID=6\x00":     "5",
		"SLURM_JOB_ID=a b\nc\x00":                  "",
		"SLURM_JOB_ID=" + strings.Repeat("1", 200): "",
		"": "",
		"XSLURM_JOB_ID=5\x00SLURM_JOB_ID_X=5\x00=\x00": "",
	} {
		if got := jobOfEnvironment([]byte(text)); got != want {
			t.Errorf("%q: job %q, want %q", text, got, want)
		}
	}
}

// TestProcess_Job: of a real process, and of one that is not there.
func TestProcess_Job(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	cmd.Env = append(os.Environ(), "SLURM_JOB_ID=31337")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	p := process(cmd.Process.Pid)
	if job := jobOfCgroup(p.read("cgroup", maxCgroupFile)); job != "" {
		t.Skipf("the test runs in job %s", job)
	}
	// Start returns when exec closes descriptors; it shows the environment a moment later.
	for deadline := time.Now().Add(time.Minute); len(p.read("environ", 1)) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no environment")
		}
	}
	if got := p.job(); got != "31337" {
		t.Errorf("job %q", got)
	}
	if got := process(1<<22+1).job() + process(0).job(); got != "" {
		t.Errorf("of no process: job %q", got)
	}
}

func TestPathInRoute(t *testing.T) {
	for label, want := range map[string]string{
		"f": "f", "a/f": "a/f", "+0/f": "f", "+255/a/f": "a/f", "+256/f": "+256/f", "+07/f": "+07/f", "+/f": "+/f", "+-1/f": "+-1/f", "+3": "+3", "++3/f": "++3/f",
	} {
		if got := pathInRoute(label); got != want {
			t.Errorf("%s: %s, want %s", label, got, want)
		}
	}
}
