package integration

import (
	"os"
	"os/exec"
)

// roleEnv makes the test binary one of the roles.
const roleEnv = "SPOOLFS_TEST_ROLE"

// roles are programs that the tests run as processes of their own.
var roles = map[string]func(args []string) int{
	"hand":      runHand,
	"busy":      runBusy,
	"alternate": runAlternate,
	"many":      runMany,
	"hold":      runHold,
	"rush":      runRush,
	"urgent":    runUrgent,
}

// self is a command that is the test binary in a role. Users who may not reach
// the file of the binary can run it all the same.
func self(role string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	return cmd
}
