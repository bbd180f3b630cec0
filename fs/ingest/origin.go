package ingest

import "time"

// Origin says where a file came from.
type Origin struct {
	// Path is the name of the file with the directories of the route that lead
	// to it, "sensors/roof.json".
	Path string

	Host string
	UID  uint32

	// GID is the writer's group, or -1 if it is not known any more.
	GID int64

	// User is the name of UID, or empty if nobody needs it.
	User string

	// PID is the process that opened the file, and Job the batch job that this
	// belonged to; 0 and "" if they are not known.
	PID int
	Job string

	// Time is when the file is ingested.
	Time time.Time
}
