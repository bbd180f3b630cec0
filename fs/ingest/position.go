package ingest

import "spoolfs/queue"

// Position says where in its file a piece of data begins.
type Position struct {
	// Line is the number of lines before the data: 0 at the start of the file.
	Line int

	// File is the id of the file. A format that has an id within the message
	// derives that from it.
	File queue.FileID

	// Origin is where the file came from, for formats that say so in messages.
	Origin Origin

	// Seen remembers the file's records for Decode, which leaves out repeats;
	// without one repeats come out, too.
	Seen *Seen
}
