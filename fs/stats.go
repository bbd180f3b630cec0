package fs

// Stats is a snapshot of the file system. Totals count since it was made.
type Stats struct {
	OpenFiles     int   // opens for writing that are not released
	BufferedBytes int64 // held in memory for them

	IngestedFilesTotal    uint64 // files that were committed with something in them
	IngestedMessagesTotal uint64 // messages in them
	IngestedDeadTotal     uint64 // dead letters in them
	IngestErrorsTotal     uint64 // FLUSHes and RELEASEs that failed
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
	fs.mu.Unlock()
	return Stats{
		OpenFiles: open, BufferedBytes: fs.buffered.Load(),
		IngestedFilesTotal:    fs.files.Load(),
		IngestedMessagesTotal: fs.messages.Load(),
		IngestedDeadTotal:     fs.dead.Load(),
		IngestErrorsTotal:     fs.errors.Load(),
		PanicsTotal:           fs.panics.Load(),
	}
}
