package fs

import (
	"strconv"
	"strings"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// opener is who opened a file, as far as its user does not say it. It is not known
// any more after a restart of the mount.
type opener struct {
	known   bool
	gid     uint32
	process process
	job     string
}

// openerOf is the opener of a request. Only with provenance does it cost anything.
func (fs *FS) openerOf(in *fuse.InHeader, p process) opener {
	o := opener{known: true, gid: in.Gid, process: p}
	if fs.jobs.Load() {
		o.job = p.job()
	}
	return o
}

// originOf says where a file comes from.
func (fs *FS) originOf(f *file) ingest.Origin {
	o := fs.originOfUser(f.route, f.label, f.uid)
	if f.opener.known {
		o.GID, o.PID, o.Job = int64(f.opener.gid), int(f.opener.process), f.opener.job
	}
	o.Time = fs.now()
	return o
}

// originOfMessage says where a stored message comes from.
func (fs *FS) originOfMessage(r *route, m *queue.Message) ingest.Origin {
	o := fs.originOfUser(r, m.File, m.UID)
	o.Time = m.Ingested
	return o
}

func (fs *FS) originOfUser(r *route, label string, uid uint32) ingest.Origin {
	o := ingest.Origin{Path: pathInRoute(label), Host: fs.opts.Host, UID: uid, GID: -1}
	if userName := r.tuned.Load().UserName; userName != nil {
		o.User = userName(uid)
	}
	return o
}

// pathInRoute is a path without the standing directory that it may begin with,
// which is the route as well.
func pathInRoute(label string) string {
	dir, rest, ok := strings.Cut(label, "/")
	if !ok {
		return label
	}
	digits, ok := strings.CutPrefix(dir, "+")
	if n, err := strconv.Atoi(digits); !ok || err != nil || n < 0 || n >= standingDirs || digits != strconv.Itoa(n) {
		return label
	}
	return rest
}

// addProvenance says in messages where they come from, if that is wanted.
func (r *route) addProvenance(ms []queue.Message, o *ingest.Origin) {
	if !r.tuned.Load().Provenance {
		return
	}
	for i := range ms {
		if !ms[i].Dead() && !ms[i].Partial {
			ingest.AddProvenance(&ms[i], o)
		}
	}
}
