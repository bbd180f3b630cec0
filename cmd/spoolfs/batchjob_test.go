package main

import "testing"

// TestBatchJobIn: a job of a batch system is told from a service and a login (O1).
func TestBatchJobIn(t *testing.T) {
	for text, want := range map[string]string{
		"0::/system.slice/slurmstepd.scope/job_4242/step_0/user/task_0\n":      "slurmstepd.scope/job_4242",
		"12:cpuset:/\n4:memory:/slurm/uid_1000/job_77/step_batch\n":            "slurm/uid_1000/job_77",
		"4:memory:/slurm_node1/slurm/job_5\n":                                  "slurm/job_5",
		"0::/pbs_jobs.service/jobid/123.server\n":                              "pbs_jobs.service/jobid/123.server",
		"4:memory:/lsf/cluster1/job.12.34.56\n":                                "lsf/cluster1/job.12.34.56",
		"0::/system.slice/htcondor/condor_var_lib_condor_execute_slot1@node\n": "htcondor/condor_var_lib_condor_execute_slot1@node",
		"0::/system.slice/spoolfs.service\n":                                   "",
		"0::/system.slice/slurmd.service\n":                                    "",
		"0::/user.slice/user-1000.slice/session-3.scope\n":                     "",
		"0::/\n": "",
		"":       "",
		"0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-0123456789abcdef.scope": "",
	} {
		if got := batchJobIn(text); got != want {
			t.Errorf("batchJobIn(%q) = %q, want %q", text, got, want)
		}
	}
}
