package ingest

// Format decodes the content of files of one format.
type Format interface {
	// Whole reports whether a file is one message, which is not known before
	// the file has ended. Other formats have a message a line.
	Whole() bool

	// Decode decodes data, which begins at a record boundary and runs to the
	// present end of the file. It keeps no state and no reference to data.
	Decode(data []byte, at Position) Result
}
