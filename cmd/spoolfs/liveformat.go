package main

import (
	"sync/atomic"

	"spoolfs/fs/ingest"
)

// liveFormat is a format whose settings can change while files are open. Whether
// a file is one message stays as it was.
type liveFormat struct{ now atomic.Pointer[formatInForce] }

// formatInForce is a format and the names of users for it, which may be nil.
type formatInForce struct {
	ingest.Format
	userName func(uint32) string
}

var _ ingest.Format = (*liveFormat)(nil)

// set changes the format to that of the configuration of a route.
func (l *liveFormat) set(route *liveRoute) error {
	f := route.flags
	format, err := f.decoder(route.subjects)
	if err != nil {
		return err
	}
	l.now.Store(&formatInForce{format, f.userNames(format)})
	return nil
}

// Whole is part of ingest.Format.
func (l *liveFormat) Whole() bool { return l.now.Load().Whole() }

// Decode is part of ingest.Format.
func (l *liveFormat) Decode(data []byte, at ingest.Position) ingest.Result {
	return l.now.Load().Decode(data, at)
}

// userName is the name of a user, or "" if the format needs none.
func (l *liveFormat) userName(uid uint32) string {
	if name := l.now.Load().userName; name != nil {
		return name(uid)
	}
	return ""
}
