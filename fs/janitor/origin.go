package janitor

import (
	"time"

	"spoolfs/fs/ingest"
)

// originOf says where a file comes from. Who opened it, and so the group, is not
// known.
func (j *Janitor) originOf(f *file) ingest.Origin {
	o := ingest.Origin{Path: f.label(), Host: j.opts.Host, UID: f.stat.uid, GID: -1, Time: time.Now()}
	if j.opts.UserName != nil {
		o.User = j.opts.UserName(f.stat.uid)
	}
	return o
}
