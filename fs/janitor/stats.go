package janitor

// Stats is a snapshot of what a janitor has done and sees.
type Stats struct {
	FilesTotal       uint64 // that were taken and are gone
	MessagesTotal    uint64 // that were stored of them
	DeadTotal        uint64 // what was no message, and is a dead letter
	PartialTotal     uint64 // what was not whole, and is a partial file
	QuarantinedTotal uint64 // files
	TakeoversTotal   uint64 // claims of a former run, or of another janitor
	ChangedTotal     uint64 // files that changed while they were taken, and are taken again
	PassesTotal      uint64
	FailuresTotal    uint64

	// Running says that a pass is under way, More that the last one could not list
	// all that there is.
	Running, More bool

	// What the last pass left where it is.
	Young  int // files that may still be written
	Busy   int // files that somebody has open for writing
	Linked int // files with several names
	Large  int // files over the limit
	Others int // what is not a file, or cannot be read

	LastError string // of the last pass; empty if all went well
}

// Left is how many files will be taken later.
func (s Stats) Left() int { return s.Young + s.Busy }

// Add adds what another janitor has done and sees.
func (s *Stats) Add(o Stats) {
	s.FilesTotal += o.FilesTotal
	s.MessagesTotal += o.MessagesTotal
	s.DeadTotal += o.DeadTotal
	s.PartialTotal += o.PartialTotal
	s.QuarantinedTotal += o.QuarantinedTotal
	s.TakeoversTotal += o.TakeoversTotal
	s.ChangedTotal += o.ChangedTotal
	s.PassesTotal += o.PassesTotal
	s.FailuresTotal += o.FailuresTotal
	s.Running, s.More = s.Running || o.Running, s.More || o.More
	s.Young += o.Young
	s.Busy += o.Busy
	s.Linked += o.Linked
	s.Large += o.Large
	s.Others += o.Others
	if o.LastError != "" {
		s.LastError = o.LastError
	}
}
