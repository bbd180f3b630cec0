package queue

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A store is a directory:
//
//	FORMAT   one line: "spoolfs store 1"
//	LOCK     locked by the process that has the store open
//	db/      the Pebble database
//
// and what damage leaves: see setaside.go.
const (
	formatFile    = "FORMAT"
	formatPrefix  = "spoolfs store "
	formatVersion = 1
	lockFile      = "LOCK"
	databaseDir   = "db"
)

// checkFormat refuses a store of a newer version. It reads only, so that such a
// store stays as it is.
func checkFormat(fsys vfs.FS, dir string) (exists bool, err error) {
	text, err := readFile(fsys, fsys.PathJoin(dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	version, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(text, formatPrefix)))
	if err != nil {
		// Torn while it was written, or damaged. The database says the rest.
		return false, nil
	}
	if version > formatVersion {
		return true, fmt.Errorf("%w: %q has format %d, this program knows %d", ErrNewerStore, dir, version, formatVersion)
	}
	return true, nil
}

func readFile(fsys vfs.FS, name string) (string, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4096))
	return string(b), err
}

// writeFormat marks the store with the present version, durably.
func writeFormat(fsys vfs.FS, dir string) error {
	name := fsys.PathJoin(dir, formatFile)
	if err := fsys.Rename(name, name+".damaged"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, formatPrefix+strconv.Itoa(formatVersion)+"\n")
	return errors.Join(err, f.Sync(), f.Close())
}

// syncStore makes the store's own entry durable, or all that is synced below it
// is gone after a power cut. Every opening does it, since the one that made the
// store may have failed just before.
func syncStore(fsys vfs.FS, dir string) error {
	return errors.Join(syncDir(fsys, dir), syncDir(fsys, fsys.PathDir(dir)))
}

func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
