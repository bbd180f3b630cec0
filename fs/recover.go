package fs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/shm"
	"spoolfs/queue"
)

// Recover takes up the stages that a former process has left, in the order in
// which the queue hands them back: held files and the directories of users are
// there again, and all else is committed, since its close may have returned 0.
//
// What another process has kept in the memory comes first: files that are still
// open stay so, and their stages with them.
func (fs *FS) Recover(stages []*queue.Stage) error {
	defer func() { fs.memory.SetAlive(fs.now().UnixNano()) }()
	if err := fs.claimStore(); err != nil {
		return err
	}
	if fs.table.Len() > 0 || fs.memory.Starts() > 0 {
		fs.tookOver = true
		var err error
		if stages, err = fs.takeOver(stages); err != nil {
			return err
		}
	}
	for _, s := range stages {
		info := s.Info()
		var err error
		switch path, mode, isDir := strings.Cut(info.File, dirMark); {
		case !info.Held:
			err = s.Commit()
		case isDir:
			fs.recoverDir(s, path, mode)
		default:
			err = fs.recoverFile(s)
		}
		if err != nil {
			return fmt.Errorf("take up file %q of the last run: %w", info.File, err)
		}
	}
	return nil
}

// claimStore sees that what is open belongs to our store: the stages of another
// one are not here, and a file whose stage is missing would be taken for one that
// was committed.
func (fs *FS) claimStore() error {
	if fs.opts.Store == "" {
		return nil
	}
	if !fs.memory.IsOfStore(fs.opts.Store) {
		for _, kind := range []shm.Kind{kindFile, kindHandle, kindDir} {
			if err := fs.table.Each(kind, func(uint64, []byte) error { return shm.ErrOtherStore }); err != nil {
				return fmt.Errorf("take over: %w: start with that one until nothing is open, or unmount first", err)
			}
		}
	}
	fs.memory.SetStore(fs.opts.Store)
	return nil
}

// dirMark stands in the name of a stage between the path of a directory and its
// mode and group: "a/b//755:100". In no path of a file it does.
const dirMark = "//"

func (d *dir) markLocked() string {
	return fmt.Sprintf("%s%s%o:%d", d.parent.pathLocked(d.name), dirMark, d.mode, d.gid)
}

func (fs *FS) recoverDir(s *queue.Stage, path, mode string) {
	octal, group, _ := strings.Cut(mode, ":")
	bits, err := strconv.ParseUint(octal, 8, 32)
	if err != nil {
		bits = 0o755
	}
	gid, _ := strconv.ParseUint(group, 10, 32)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	d := fs.needDirLocked(fs.routeOfStageLocked(s).dir, path, s.Info().UID)
	d.uid, d.gid, d.mode, d.mark = s.Info().UID, uint32(gid), uint32(bits)&0o7777, s
	d.markID = s.File()
	fs.noteDirLocked(d)
}

// routeOfStageLocked is the route whose messages a stage holds.
func (fs *FS) routeOfStageLocked(s *queue.Stage) *route { return fs.routeLocked(s.Route().ID()) }

// needDirLocked returns the directory of a path below another one, and makes it if
// it is not there.
func (fs *FS) needDirLocked(d *dir, path string, uid uint32) *dir {
	for name := range strings.SplitSeq(path, "/") {
		next := d.dirs[name]
		if next == nil {
			next = fs.addDirLocked(d, name, &fuse.Attr{Mode: 0o755, Owner: fuse.Owner{Uid: uid}})
			fs.usage.force(uid, holding{files: 1})
		}
		d = next
	}
	return d
}

// recoverFile takes up a held file. If a crash has left two of one name, the older
// one was to be replaced.
func (fs *FS) recoverFile(s *queue.Stage) error {
	info := s.Info()
	fs.mu.Lock()
	r := fs.routeOfStageLocked(s)
	fs.mu.Unlock()
	f := fs.newFile(info.UID, r, info.File)
	f.held, f.stage, f.stageID, f.put = true, s, s.File(), true
	whole, err := fs.measure(f)
	if err != nil || !whole {
		return errors.Join(err, fs.rescue(f))
	}
	fs.mu.Lock()
	d, name := r.dir, info.File
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		d, name = fs.needDirLocked(d, name[:i], info.UID), name[i+1:]
	}
	fs.usage.force(info.UID, holding{files: 1})
	key := nameKey{info.UID, name}
	var old *file
	if n := d.nodes[key]; n != nil {
		old = n.held
		fs.unholdLocked(n)
		fs.holdLocked(n, f)
	} else {
		n := fs.newNodeLocked(fs.newNodeID(r), d, key, &fuse.Attr{Mode: 0o600, Owner: fuse.Owner{Uid: info.UID}})
		fs.holdLocked(n, f)
		fs.nameLocked(n, d, key)
	}
	fs.noteFileLocked(f)
	fs.mu.Unlock()
	if old != nil {
		defer fs.forgetIfEnded(old)
		return fs.abandon(old, reasonReplaced)
	}
	return nil
}

// measure finds out how large a held file is, and when it was written last. It
// reports whether all of it can be read.
func (fs *FS) measure(f *file) (whole bool, err error) {
	var last time.Time
	for m, err := range f.stage.Entries() {
		if err != nil || m.Dead() {
			return false, err
		}
		f.base += int64(len(m.Body))
		f.pieces = append(f.pieces, f.base)
		last = m.Ingested
	}
	f.size.Store(f.base)
	if !last.IsZero() {
		f.active.Store(last.UnixNano())
	}
	return true, nil
}

// rescue sets aside what can be read of a held file that is damaged, and as dead
// letters what cannot.
func (fs *FS) rescue(f *file) error {
	rest := queue.Message{Partial: true, Reason: reasonDamaged, Line: 1}
	var ms []queue.Message
	for m, err := range f.stage.Entries() {
		switch {
		case err != nil:
			return err
		case m.Dead():
			m.Line = uint32(len(ms)) + 2
			ms = append(ms, *m)
		default:
			rest.Body = append(rest.Body, m.Body...)
		}
	}
	ms = append(ms, rest)
	f.stage.SetInfo(f.label, false)
	if err := f.stage.Put(0, fs.identify(f, ms)); err != nil {
		return err
	}
	for i := range ms {
		f.staged.counts.add(&ms[i])
	}
	fs.commit(f)
	return nil
}
