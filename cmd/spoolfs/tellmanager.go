package main

import "fmt"

// tellManager tells the service manager how things are, once a second at most.
// Its watchdog is fed by the keeper, or by us where there is none: as long as the
// mount and the store get on. A look that hangs at the disk ends here, too.
func (d *daemon) tellManager(s status) {
	line := string(s.Health.Level) + ": " + gist(&s)
	switch {
	case d.worker != nil:
		d.worker.setStatus(line)
	case d.manager == nil:
	case d.monitor.progress() == nil:
		d.notify("STATUS="+line, "WATCHDOG=1")
	default:
		d.notify("STATUS=" + line)
	}
}

// gist is a status in a few words, for people.
func gist(s *status) string {
	return fmt.Sprintf("%s, %d waiting%s, %d dead", s.Publisher.State, waiting(s), oldest(s.Queue), s.Queue.Dead)
}
