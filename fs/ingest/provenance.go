package ingest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"spoolfs/queue"
)

// provenancePrefix is what the names of the headers begin with that say where a
// message comes from.
const provenancePrefix = "x-spool-"

// AddProvenance says in the headers of a message where it comes from, as far as
// that is known:
//
//	x-spool-host         host of the mount
//	x-spool-uid          user id of the writer, a number, as the next and pid
//	x-spool-gid          his group
//	x-spool-user         his name
//	x-spool-pid          the process that opened the file
//	x-spool-job          the batch job that this belonged to
//	x-spool-ingested-at  when the file was ingested, RFC 3339 in UTC
//
// Headers of such names that the message brings itself are not believed.
func AddProvenance(m *queue.Message, o *Origin) {
	m.Headers = slices.DeleteFunc(m.Headers, func(h queue.Header) bool {
		return strings.HasPrefix(strings.ToLower(h.Name), provenancePrefix)
	})
	text := func(name, value string) {
		if value != "" {
			m.Headers = append(m.Headers, queue.Header{Name: provenancePrefix + name, Value: percentEscape(value)})
		}
	}
	number := func(name string, value int64) {
		m.Headers = append(m.Headers, queue.Header{Name: provenancePrefix + name, Value: strconv.FormatInt(value, 10), JSON: true})
	}
	text("host", o.Host)
	number("uid", int64(o.UID))
	if o.GID >= 0 {
		number("gid", o.GID)
	}
	text("user", o.User)
	if o.PID > 0 {
		number("pid", int64(o.PID))
	}
	text("job", o.Job)
	text("ingested-at", o.Time.UTC().Format(time.RFC3339Nano))
}
