package ingest

import (
	"bytes"

	"spoolfs/queue"
)

// Raw is the format in which the file is the message: its body is the bytes of
// the file, whatever they are.
type Raw struct {
	key string
}

var _ Format = (*Raw)(nil)

// NewRaw returns a decoder that gives all messages the same routing key.
func NewRaw(key string) *Raw { return &Raw{key} }

// Whole implements [Format].
func (*Raw) Whole() bool { return true }

// Decode implements [Format]. All of the file is in the tail, since any byte that
// comes later would still belong to it.
func (f *Raw) Decode(data []byte, _ Position) Result {
	if len(data) == 0 {
		return Result{}
	}
	return Result{Tail: &queue.Message{
		Key: f.key, HasKey: true, Line: 1, ContentType: "application/octet-stream", Body: bytes.Clone(data),
	}}
}
