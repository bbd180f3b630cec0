package main

import "time"

// observeFlags are those of logs, metrics and health.
type observeFlags struct {
	Listen       string        `placeholder:"ADDRESS" help:"Where /metrics, /livez, /readyz and /debug/pprof are served over HTTP: host:port, or unix:/path (nowhere)."`
	StalledAfter time.Duration `default:"1m" help:"How long a broker that is there may take nothing while messages wait, until /livez says so (${default})."`

	LogFormat  string        `default:"text" enum:"text,json" help:"Form of the log: ${enum} (${default})."`
	LogSummary time.Duration `default:"1m" help:"How often the log sums up what has happened, if anything has; 0 for never (${default})."`
}

// check refuses what cannot work.
func (f *observeFlags) check() error {
	switch {
	case f.StalledAfter <= 0:
		return badSetting("stalled_after", "want more than 0, such as 1m")
	case f.LogSummary < 0:
		return badSetting("log_summary", "want 0, or a time such as 1m")
	}
	return nil
}
