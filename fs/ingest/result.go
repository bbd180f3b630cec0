package ingest

import "spoolfs/queue"

// Result is what Decode found.
type Result struct {
	// Messages are the messages and dead letters of the whole records in the
	// data, in file order. Line is set, the first line of a file being 1, and
	// what depends on content; ID, Ingested, File and UID are the caller's.
	Messages []queue.Message

	// Consumed is the number of bytes that these records cover. The next Decode
	// starts there, Lines further down.
	Consumed int

	// Lines is the number of physical lines in those bytes.
	Lines int

	// Skipped is the number of those lines that need nothing: blank ones, and
	// records that are marked as done.
	Skipped int

	// Repeated is the number of those lines that are left out since the same
	// record stood on an earlier line.
	Repeated int

	// Tail is what the bytes after Consumed would be if the file ended here: a
	// message, or a dead letter. It is nil if there are none, or if they need
	// nothing.
	Tail *queue.Message
}

// count counts a line that needs nothing.
func (r *Result) count(skip string) {
	if skip == skipRepeated {
		r.Repeated++
	} else {
		r.Skipped++
	}
}
