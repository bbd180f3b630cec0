package fs

// Stats is a snapshot of the file system. Totals count since it was made.
type Stats struct {
	OpenFiles     int   // opens for writing that are not released
	HeldFiles     int   // that wait for their rename
	BufferedBytes int64 // held in memory for them
	Draining      bool  // new files are refused

	IngestedFilesTotal    uint64 // files that were committed with something in them
	IngestedMessagesTotal uint64 // messages in them
	IngestedDeadTotal     uint64 // dead letters in them
	IngestedPartialTotal  uint64 // partial files in them
	IngestedRepeatsTotal  uint64 // records in them that had stood in their file before, and are left out
	IngestErrorsTotal     uint64 // FLUSHes and RELEASEs that failed
	UnknownEndingsTotal   uint64 // files published though their writer may have been killed
	PurgedTotal           uint64 // messages that an operator removed
	RedrivenTotal         uint64 // messages and partial files that an operator made ready
	PanicsTotal           uint64 // requests that were answered with EIO by a bug
}

// Stats returns a snapshot.
func (fs *FS) Stats() Stats {
	fs.mu.Lock()
	open := 0
	for _, h := range fs.handles {
		if h.writer {
			open++
		}
	}
	held, draining := len(fs.held), fs.draining
	fs.mu.Unlock()
	return Stats{
		OpenFiles: open, HeldFiles: held, BufferedBytes: fs.usage.held().bytes, Draining: draining,
		IngestedFilesTotal:    fs.files.Load(),
		IngestedMessagesTotal: fs.messages.Load(),
		IngestedDeadTotal:     fs.dead.Load(),
		IngestedPartialTotal:  fs.partial.Load(),
		IngestedRepeatsTotal:  fs.repeated.Load(),
		IngestErrorsTotal:     fs.errors.Load(),
		UnknownEndingsTotal:   fs.unknown.Load(),
		PurgedTotal:           fs.tree.purged.Load(),
		RedrivenTotal:         fs.tree.redriven.Load(),
		PanicsTotal:           fs.panics.Load(),
	}
}
