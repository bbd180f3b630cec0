package amqp

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// pains are the ways in which others have been hurt by a broker, and the tests
// that show that we are not. The numbers are those of the collection of public
// bug reports that the design builds on.
var pains = map[string][]string{
	"B1 messages vanish with a broker that restarts":          {"TestPublisher_SessionLostRequeues", "TestLine_CutAtEachStep", "TestMount_BrokerKilledUnderLoad", "TestSession_BrokerEnds"},
	"B2 it never reconnects, or is connected and dead":        {"TestPublisher_KeepsDialling", "TestPublisher_ConfirmTimeout", "TestLine_BlackHole", "TestSession_BlackHole"},
	"B3 publishing hangs on connection.blocked":               {"TestLine_MemoryAlarm", "TestWatchdog", "TestSession_Blocked"},
	"B4 a confirm that never comes, or that nobody reads":     {"TestPublisher_ConfirmTimeout", "TestSession_CloseWithoutReader", "TestSession_SlowReader"},
	"B5 a missing exchange closes the channel":                {"TestLine_ExchangeDeleted", "TestLine_RecordNamesExchange", "TestPublisher_OwnExchangeMissing"},
	"B6 a permission that is missing makes no error":          {"TestLine_PermissionWithdrawn", "TestLine_RecordNamesExchange", "TestLine_TopicRefused"},
	"B7 what cannot be routed is confirmed and lost":          {"TestPublisher_Returned", "TestSession_Returned", "TestSession_ReturnedInABurst", "TestMount_ExchangeIsDeclared"},
	"B9 a transaction commits what was dropped":               {"TestLine_QueueIsFull", "TestSession_RejectedAmongConfirmed"},
	"B10 a message too large closes the channel each time":    {"TestLine_TooLarge", "TestMount_PoisonMessage", "TestPublisher_CulpritStandsAlone"},
	"B11 short strings over 255 bytes":                        {"TestEncode_Invalid", "TestEncode_AtTheLimit", "TestRoutingKey"},
	"B13 refusals that look alike, passwords, credentials":    {"TestDial_Refused", "TestMount_FaultsAreToldApart", "TestLine_LoginChanges", "TestMount_RefusesClearly"},
	"B14 all nodes come back at once":                         {"TestBackoff_Herd", "TestBackoff_Spans", "TestPace"},
	"B16 certificates are not read again":                     {"TestTLS_Replaced", "TestTLS_Certificates"},
	"B17 what fails for good blocks the rest, or is dropped":  {"TestPublisher_InvalidIsDeadLetter", "TestLine_TooLarge", "TestMount_CorpusThroughBroker"},
	"B18 retries never expire, or wait for a schedule":        {"TestPublisher_Expired", "TestMount_Expiry", "TestMount_AllowExchange"},
	"B19 a message that crashes the process, again and again": {"TestPublisher_PanicIsDeadLetter"},
}

// TestPains: the tests that are named exist.
func TestPains(t *testing.T) {
	tests := make(map[string]bool)
	name := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, dir := range []string{".", "..", "../../integration"} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no tests in %s: %v", dir, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range name.FindAllSubmatch(text, -1) {
				tests[string(found[1])] = true
			}
		}
	}
	for pain, shown := range pains {
		for _, test := range shown {
			if !tests[test] {
				t.Errorf("%s: there is no %s", pain, test)
			}
		}
	}
}
