package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"spoolfs/fs"
	"spoolfs/queue"
)

// importer stores the messages of bundles.
type importer struct {
	queue *queue.Queue
	route func(name string) (*queue.Route, error) // that takes what one of that name has held
	log   *slog.Logger
	limit int // of a line

	into string // the route of the messages that are not stored yet
	rest []byte // the beginning of a line
	open bool   // there was a head

	mark   queue.Mark // what is stored of the bundle
	known  queue.Mark // what was when it began
	failed error

	stored, skipped uint64
}

var _ fs.Sink = (*importer)(nil)

// errBundle says that something is no bundle.
var errBundle = errors.New("not a bundle")

// maxBundleLine is the longest line: the largest message in base64, and the rest.
const maxBundleLine = 256 << 20

func newImporter(q *queue.Queue, route func(string) (*queue.Route, error), log *slog.Logger) *importer {
	return &importer{queue: q, route: route, log: log, limit: maxBundleLine}
}

// Write stores what is whole in the data. After an error nothing more is taken.
func (im *importer) Write(data []byte) error {
	if im.failed == nil {
		im.failed = im.write(data)
		if im.failed != nil {
			im.log.Warn("import", "error", im.failed)
		}
	}
	return im.failed
}

func (im *importer) write(data []byte) error {
	if !bytes.ContainsRune(data, '\n') && len(im.rest)+len(data) <= im.limit {
		im.rest = append(im.rest, data...)
		return nil
	}
	data = append(im.rest, data...)
	im.rest = nil
	var batch []queue.Message
	for {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			break
		}
		data = rest
		m, err := im.take(line, &batch)
		if err != nil {
			// What was read before is as good as ever.
			return errors.Join(im.store(&batch), fmt.Errorf("%w: %w", syscall.EINVAL, err))
		}
		if m != nil {
			batch = append(batch, *m)
		}
	}
	if len(data) > im.limit {
		return fmt.Errorf("%w: %w: a line of more than %d bytes", syscall.EINVAL, errBundle, im.limit)
	}
	im.rest = bytes.Clone(data)
	return im.store(&batch)
}

// take reads a line. It returns the message of it, unless that is stored already.
func (im *importer) take(line []byte, batch *[]queue.Message) (*queue.Message, error) {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil, nil
	}
	var head bundleHead
	if err := json.Unmarshal(line, &head); err == nil && head.Format != 0 {
		if err := im.store(batch); err != nil {
			return nil, err
		}
		return nil, im.begin(head)
	}
	if !im.open {
		return nil, fmt.Errorf("%w: it does not begin with the line that \"spoolfs export\" writes", errBundle)
	}
	var b bundled
	if err := json.Unmarshal(line, &b); err != nil {
		return nil, fmt.Errorf("%w: line %d behind the head: %w", errBundle, im.mark.Lines+1, err)
	}
	m, err := b.message()
	if err != nil {
		return nil, fmt.Errorf("%w: line %d behind the head: %w", errBundle, im.mark.Lines+1, err)
	}
	if m.Ingested.IsZero() {
		m.Ingested = time.Now()
	}
	if into := cmp.Or(b.Route, defaultRoute); into != im.into {
		// The mark tells of lines that are stored, and a batch is of one route.
		if err := im.store(batch); err != nil {
			return nil, err
		}
		im.into = into
	}
	return im.count(line, &m)
}

// begin begins a bundle.
func (im *importer) begin(head bundleHead) error {
	id, err := hex.DecodeString(head.ID)
	switch {
	case head.Format != bundleFormat:
		return fmt.Errorf("%w: it has the format %d, and this version knows %d", errBundle, head.Format, bundleFormat)
	case err != nil || len(id) != len(queue.FileID{}):
		return fmt.Errorf("%w: its id is %q", errBundle, head.ID)
	}
	if im.known, err = im.queue.Mark(queue.FileID(id)); err != nil {
		return err
	}
	im.open, im.mark = true, queue.Mark{Bundle: queue.FileID(id)}
	return nil
}

// count counts a line. What a former import has stored is passed over, if it was
// the same.
func (im *importer) count(line []byte, m *queue.Message) (*queue.Message, error) {
	h := sha256.New()
	h.Write(im.mark.Sum[:])
	h.Write(line)
	im.mark.Lines++
	h.Sum(im.mark.Sum[:0])
	switch {
	case im.mark.Lines > im.known.Lines:
		return m, nil
	case im.mark.Lines == im.known.Lines && im.mark.Sum != im.known.Sum:
		return nil, fmt.Errorf("%w: it is not the bundle that was imported with the id %s", errBundle, im.known.Bundle)
	}
	im.skipped++
	return nil, nil
}

// store stores a batch, durably.
func (im *importer) store(batch *[]queue.Message) error {
	if len(*batch) == 0 {
		return nil
	}
	im.mark.At = time.Now()
	route, err := im.route(im.into)
	if err != nil {
		return err
	}
	if err := route.AppendMarked(*batch, im.mark); err != nil {
		return err
	}
	im.stored += uint64(len(*batch))
	*batch = nil
	return nil
}

// Flush is the end of a close. A part of a line was cut.
func (im *importer) Flush() error {
	if im.failed != nil {
		return im.failed
	}
	if len(bytes.TrimSpace(im.rest)) > 0 {
		im.failed = fmt.Errorf("%w: %w: its last line is cut", syscall.EINVAL, errBundle)
		return im.failed
	}
	if im.stored+im.skipped > 0 {
		im.log.Info("imported messages", "stored", im.stored, "known_before", im.skipped, "bundle", im.mark.Bundle)
		im.stored, im.skipped = 0, 0
	}
	return nil
}

// importFile is .status/import.
func (d *daemon) importFile() fs.StatusFile {
	const help = "Write here what \"spoolfs export\" has written, or use \"spoolfs import\".\nA bundle that was imported before is passed over.\n"
	return fs.StatusFile{
		Name: "import", Private: true, Content: func() []byte { return []byte(help) },
		Sink: func() fs.Sink { return newImporter(d.queue, d.importRoute, d.log) },
	}
}

// importRoute is the route of a name. What the configuration does not know is kept in
// a route of its own, as it would be if that had been taken out: to publish it to the
// exchange of another could not be undone.
func (d *daemon) importRoute(name string) (*queue.Route, error) {
	for _, q := range d.queue.Routes() {
		if q.Name() == name {
			return q, nil
		}
	}
	if err := checkRouteName(name); err != nil {
		return nil, fmt.Errorf("%w: %w: %w", syscall.EINVAL, errBundle, err)
	}
	q, err := d.queue.Route(name)
	if err != nil {
		return nil, err
	}
	d.log.Warn("imported messages are of a route that is not in the configuration: they are kept in it", "route", name)
	return q, d.fs.SetRoutes(d.fsRoutes())
}
