package scale

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// retryMax is the default of the publisher: how long a dial is away at most.
const retryMax = 30 * time.Second

// crowd is twenty nodes with a backlog that takes their broker minutes. With all that a
// window allows unconfirmed a verdict would take 150 s, five times what they wait
// for one.
func crowd(seed uint64) settings {
	return settings{Seed: seed, Nodes: 20, Outage: 10 * time.Minute, Backlog: 300, Confirms: 40, Handshakes: 10}
}

// TestScale_Overload proves P15 of package publisher, and P4 for what comes after the
// dials: nodes that all come back to a broker whose limit they are do not stampede, give
// no connection up, send nothing twice, keep the broker busy until all is sent, and
// leave no node behind.
func TestScale_Overload(t *testing.T) {
	for seed := range uint64(2) {
		r := simulate(t, crowd(seed))
		t.Logf("%+v", r)
		if r.Repeats > 0 || r.DialsFailed > 0 || r.LongestConfirm > 30*time.Second {
			t.Errorf("seed %d: %d messages were sent again, %d dials have failed, a verdict took %s", seed, r.Repeats, r.DialsFailed, r.LongestConfirm)
		}
		if most := r.Ideal*11/10 + retryMax/2; r.All > most {
			t.Errorf("seed %d: all had caught up after %s, want it within %s", seed, r.All, most)
		}
		if r.DialsAtEnd > 6 || r.DialsAfter > 8 || r.PeakConnections != 20 {
			t.Errorf("seed %d: %d dials in the first second, %d in the busiest, %d connections", seed, r.DialsAtEnd, r.DialsAfter, r.PeakConnections)
		}
		if r.Fairness < 0.4 {
			t.Errorf("seed %d: fairness %.2f", seed, r.Fairness)
		}
	}
}

// TestScale_Stampede: without chance in their waits all nodes dial at once, which shows
// that the model would.
func TestScale_Stampede(t *testing.T) {
	s := crowd(0)
	s.Backlog, s.Together = 20, true
	if r := simulate(t, s); r.DialsAfter != 20 {
		t.Errorf("%d dials in the busiest second, want all 20: %+v", r.DialsAfter, r)
	}
}

// TestScale_Deterministic: the seed says all.
func TestScale_Deterministic(t *testing.T) {
	s := crowd(7)
	s.Backlog = 100
	first := simulate(t, s)
	if again := simulate(t, s); again != first {
		t.Errorf("the same seed gives\n%+v, and then\n%+v", first, again)
	}
	s.Seed++
	if other := simulate(t, s); other == first {
		t.Errorf("another seed gives the same: %+v", other)
	}
}

// TestScale_Simulate is what "make bench" runs: it simulates the settings that it is
// given as JSON, and prints the result.
func TestScale_Simulate(t *testing.T) {
	text, ok := os.LookupEnv("SPOOLFS_SCALE")
	if !ok {
		t.Skip("no settings: it is for make bench")
	}
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	r, err := json.Marshal(simulate(t, s))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nresult %s\n", r)
}
