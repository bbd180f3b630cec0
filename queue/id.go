package queue

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
)

// FileID identifies what one open file description wrote. It names the stage
// and begins the IDs of the messages.
type FileID [16]byte

// NewFileID draws a random file id of 128 bits.
func NewFileID() FileID {
	var f FileID
	// crypto/rand.Read never fails since Go 1.24: it ends the process instead.
	rand.Read(f[:])
	return f
}

// String returns the id in hexadecimal.
func (f FileID) String() string { return hex.EncodeToString(f[:]) }

// MessageID is the ID of the message on the given line of the file.
func (f FileID) MessageID(line uint32) ID {
	return ID(f.String() + "-" + strconv.FormatUint(uint64(line), 10))
}

// File returns the id of the file that a message is from; zero if its ID has
// another form.
func (id ID) File() FileID {
	f, _, _ := id.split()
	return f
}

// split takes an ID apart into file and line, and reports whether putting them
// together again gives the same ID. The record codec stores such IDs in half
// the space.
func (id ID) split() (FileID, uint32, bool) {
	var f FileID
	if len(id) < 34 || id[32] != '-' {
		return f, 0, false
	}
	if _, err := hex.Decode(f[:], []byte(id[:32])); err != nil {
		return f, 0, false
	}
	line, err := strconv.ParseUint(string(id[33:]), 10, 32)
	if err != nil || f.MessageID(uint32(line)) != id {
		return f, 0, false
	}
	return f, uint32(line), true
}
