package ingest

// Position says where in its file a piece of data begins.
type Position struct {
	// Line is the number of lines before the data: 0 at the start of the file.
	Line int
}
