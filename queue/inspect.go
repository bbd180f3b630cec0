package queue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
)

// listing is what the names in the directory of a database say.
type listing struct {
	fs        vfs.FS
	dir       string
	tables    map[uint64]string // number to name
	logs      []logFile         // sorted by number
	manifest  string            // what the marker names; empty without marker
	manifests int
	format    string // of the database; empty without marker
}

type logFile struct {
	number uint64
	name   string
}

func (l *listing) path(name string) string { return l.fs.PathJoin(l.dir, name) }

// list reads the directory. It is no error if there is none.
func list(fsys vfs.FS, dir string) (*listing, error) {
	l := &listing{fs: fsys, dir: dir, tables: map[uint64]string{}}
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	slices.Sort(names)
	iters := map[string]uint64{}
	for _, name := range names {
		if number, _, ok := wal.ParseLogFilename(name); ok {
			l.logs = append(l.logs, logFile{uint64(number), name})
		} else if number, ok := numbered(name, "", ".sst"); ok {
			l.tables[number] = name
		} else if _, ok := numbered(name, "MANIFEST-", ""); ok {
			l.manifests++
		} else if part := strings.SplitN(name, ".", 4); len(part) == 4 && part[0] == "marker" {
			n, err := strconv.ParseUint(part[2], 10, 64)
			if err != nil || n < iters[part[1]] {
				continue
			}
			iters[part[1]] = n
			switch part[1] {
			case "manifest":
				l.manifest = part[3]
			case "format-version":
				l.format = part[3]
			}
		}
	}
	slices.SortStableFunc(l.logs, func(a, b logFile) int { return int(int64(a.number - b.number)) })
	return l, err
}

func numbered(name, prefix, suffix string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if digits, ok = cutSuffix(digits, suffix, ok); !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

func cutSuffix(s, suffix string, ok bool) (string, bool) {
	s, found := strings.CutSuffix(s, suffix)
	return s, ok && found
}

// inspect looks at a database before Pebble opens it, since Pebble deletes what
// its manifest does not name, takes a damaged manifest for a shorter one and a
// missing one for a new database, and does not miss a log. The error is
// errDamaged, ErrNewerStore, or of the disk.
func inspect(fsys vfs.FS, dir string) error {
	l, err := list(fsys, dir)
	if err != nil {
		return err
	}
	if version, err := strconv.ParseUint(l.format, 10, 32); err == nil && version > uint64(pebble.FormatNewest) {
		return fmt.Errorf("%w: database %q has format %d, this program knows %d", ErrNewerStore, dir, version, pebble.FormatNewest)
	}
	if l.manifest == "" || l.format == "" {
		return l.inspectUnmarked()
	}
	m, err := l.readManifest()
	if err != nil {
		return err
	}
	if m.torn {
		if err := l.inspectTorn(m); err != nil {
			return err
		}
	}
	return l.inspectLogs(m)
}

// inspectUnmarked is for a database without a marker, which is either not quite
// made yet, and empty, or damaged.
func (l *listing) inspectUnmarked() error {
	if len(l.tables) > 0 {
		return fmt.Errorf("%w: there are %d tables and no marker", errDamaged, len(l.tables))
	}
	for _, log := range l.logs {
		scan, err := l.scanLog(log, func(logScan, []byte) error { return errStop })
		if err != nil && !errors.Is(err, errStop) {
			return err
		}
		if scan.records > 0 {
			return fmt.Errorf("%w: log %s has records and there is no marker", errDamaged, log.name)
		}
	}
	return nil
}

// manifest is what this package wants to know of a manifest.
type manifest struct {
	minLog  uint64 // logs with smaller numbers are in tables
	lastSeq uint64 // the last sequence number when it was written
	torn    bool   // it does not end where a record ends
}

// readManifest reads the manifest that is in use.
func (l *listing) readManifest() (manifest, error) {
	var m manifest
	f, err := l.fs.Open(l.path(l.manifest))
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%w: %s is missing", errDamaged, l.manifest)
	}
	if err != nil {
		return m, err
	}
	defer f.Close()
	for r, n := record.NewReader(f, 0), 0; ; n++ {
		var edit []byte
		rec, err := r.Next()
		if err == nil {
			edit, err = io.ReadAll(rec)
		}
		switch {
		case err == io.EOF && n > 0:
			return m, nil
		case n > 0 && errors.Is(err, record.ErrUnexpectedEOF):
			m.torn = true
			return m, nil
		case err != nil && (err == io.EOF || !ofSystem(err)):
			return m, fmt.Errorf("%w: %s, record %d: %w", errDamaged, l.manifest, n, err)
		case err != nil:
			return m, err
		}
		m.addEdit(edit)
	}
}

// addEdit reads the numbers at the beginning of a version edit of Pebble, which
// come in this order.
func (m *manifest) addEdit(edit []byte) {
	const comparer, logNumber, nextFile, lastSequence, prevLog, removed, created = 1, 2, 3, 4, 9, 106, 105
	next := func() uint64 {
		v, n := binary.Uvarint(edit)
		edit = edit[max(n, 0):]
		return v
	}
	for len(edit) > 0 {
		switch next() {
		case comparer:
			edit = edit[min(next(), uint64(len(edit))):]
		case logNumber:
			m.minLog = next()
		case lastSequence:
			m.lastSeq = next()
		case nextFile, prevLog, removed:
			next()
		case created:
			next()
			next()
		default:
			return
		}
	}
}

// inspectLogs looks for gaps in the logs that Pebble is going to replay. The
// sequence numbers of their batches are contiguous.
func (l *listing) inspectLogs(m manifest) error {
	next := max(m.lastSeq+1, firstSeq)
	for _, log := range l.logs {
		if log.number < m.minLog {
			continue
		}
		scan, err := l.scanLog(log, func(scan logScan, batch []byte) error {
			if scan.gaps > 0 {
				return nil // what was never synced may have gaps
			}
			seq := batchSeq(batch)
			if seq > next {
				return fmt.Errorf("%w: log %s goes on with batch %d where %d was due", errDamaged, log.name, seq, next)
			}
			next = max(next, seq+uint64(binary.LittleEndian.Uint32(batch[8:])))
			return nil
		})
		if err != nil {
			return err
		}
		if scan.gaps > 0 && scan.closed {
			return fmt.Errorf("%w: log %s has %d gaps", errDamaged, log.name, scan.gaps)
		}
	}
	return nil
}

// firstSeq is the first sequence number that Pebble gives.
const firstSeq = 10

// inspectTorn tells a manifest whose last record was never quite written from
// one that was cut: then there is a table with messages that are nowhere else.
func (l *listing) inspectTorn(m manifest) error {
	live, err := l.liveTables()
	if err != nil {
		return err
	}
	firstLogged := uint64(1<<63 - 1)
	for _, log := range l.logs {
		_, err := l.scanLog(log, func(_ logScan, batch []byte) error {
			firstLogged = min(firstLogged, batchSeq(batch))
			return errStop
		})
		if err != nil && !errors.Is(err, errStop) {
			return err
		}
	}
	for number, name := range l.tables {
		if _, ok := live.tables[number]; ok {
			continue
		}
		lost, err := l.hasOnly(name, live.flushed, firstLogged)
		if err != nil || lost {
			return errors.Join(err, fmt.Errorf("%w: %s is cut, and %s is not in it", errDamaged, l.manifest, name))
		}
	}
	return nil
}
