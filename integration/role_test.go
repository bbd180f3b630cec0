package integration

// roleEnv makes the test binary one of the roles.
const roleEnv = "SPOOLFS_TEST_ROLE"

// roles are programs that the tests run as processes of their own.
var roles = map[string]func(args []string) int{
	"urgent": runUrgent,
}
