package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// importCommand are the flags of "spoolfs import".
type importCommand struct {
	Store       string `placeholder:"DIR" env:"-" help:"Store to import into, instead of a spool that is mounted. No daemon may serve it; it is made if it is not there."`
	TopicPrefix string `placeholder:"WORDS" help:"Prefix that the messages of retry files will be published under (that of the daemon; v03 with --store)."`

	Arguments []string `arg:"" optional:"" name:"file" help:"Bundles, or retry files of Sarracenia; standard input if there is none. The last argument may be a mountpoint, which is not needed if only one spool is mounted."`
}

// Help is shown by kong.
func (*importCommand) Help() string {
	return `A bundle that was imported before is passed over, and one that was cut goes on
where it was: a store remembers the last 4,096 bundles. Messages keep their
ids. A retry file of sr3 or sarra v2 is taken as a whole; it stays where it is.

Examples:

    spoolfs import bundle /run/spool
    ssh node spoolfs export --store /var/lib/spoolfs | spoolfs import
    spoolfs import ~/.cache/sr3/shovel/x/diskqueue_post_retry_00*
`
}

// Run is called by kong.
func (c *importCommand) Run(env *environment) error {
	files, mountpoint := c.Arguments, ""
	if n := len(files); n > 0 && c.Store == "" && isDirectory(files[n-1]) {
		files, mountpoint = files[:n-1], files[n-1]
	}
	if c.Store != "" {
		s, err := openOffline(env, c.Store, true)
		if err != nil {
			return err
		}
		c.TopicPrefix = cmp.Or(c.TopicPrefix, "v03")
		im := newImporter(s.Queue, s.routeOf, s.log)
		return errors.Join(c.importAll(files, im.inOne), s.close())
	}
	m, err := findMount(mountpoint)
	if err != nil {
		return err
	}
	if c.TopicPrefix == "" {
		if c.TopicPrefix, err = topicPrefixOf(m.Mountpoint); err != nil {
			return importError(m.Mountpoint, err)
		}
	}
	return c.importAll(files, func(bundle io.Reader) error { return importInto(env, m.Mountpoint, bundle) })
}

// topicPrefixOf is the topic prefix that a daemon publishes under.
func topicPrefixOf(mountpoint string) (string, error) {
	text, err := os.ReadFile(filepath.Join(mountpoint, ".status", "config"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "topic_prefix "); ok {
			return strings.TrimSuffix(value, "\n"), nil
		}
	}
	return "", fmt.Errorf("the daemon of %s does not tell its topic prefix: it is of another version, give --topic-prefix", mountpoint)
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// importAll imports files one after the other.
func (c *importCommand) importAll(files []string, into func(io.Reader) error) error {
	if len(files) == 0 {
		return into(os.Stdin)
	}
	for _, file := range files {
		bundle, err := c.openBundle(file)
		if err != nil {
			return err
		}
		err = into(bundle)
		if err = errors.Join(err, bundle.Close()); err != nil {
			return withCode(codeOf(err), fmt.Errorf("import %s: %w", file, err))
		}
	}
	return nil
}

// openBundle opens a bundle, or makes one of a retry file.
func (c *importCommand) openBundle(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, withCode(exitUsage, err)
	}
	head := make([]byte, len(bundleBegin))
	n, err := io.ReadFull(f, head)
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, withCode(exitIO, errors.Join(err, f.Close()))
	}
	if string(head[:n]) == bundleBegin {
		return f, nil
	}
	content, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, withCode(exitIO, err)
	}
	bundle, found := bundleOfDiskqueue(filepath.Base(path), content, c.TopicPrefix)
	if !found && len(content) > 0 {
		return nil, withCode(exitData, fmt.Errorf("%s: neither a bundle nor a file with a message of Sarracenia in it", path))
	}
	return io.NopCloser(bytes.NewReader(bundle)), nil
}

// bundleBegin is what a bundle begins with.
const bundleBegin = `{"spoolfs_bundle":`

// importInto writes a bundle to the spool of a mountpoint. What write(2) has
// returned for is on its disk.
func importInto(env *environment, mountpoint string, bundle io.Reader) error {
	f, err := os.OpenFile(filepath.Join(mountpoint, ".status", "import"), os.O_WRONLY, 0)
	if err != nil {
		return importError(mountpoint, err)
	}
	buf := make([]byte, 1<<20)
	for err == nil {
		n := 0
		if n, err = bundle.Read(buf); n > 0 {
			if _, e := f.Write(buf[:n]); e != nil {
				return importError(mountpoint, errors.Join(e, f.Close()))
			}
		}
		if env.ctx.Err() != nil {
			return withCode(exitTemporary, errors.Join(errors.New("interrupted: what was imported is safe, do it again for the rest"), f.Close()))
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return importError(mountpoint, errors.Join(err, f.Close()))
}

// importError says what an error of the status file means.
func importError(mountpoint string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EINVAL):
		return withCode(exitData, fmt.Errorf("the daemon of %s refuses it as no bundle, or as another one with the id of one that it knows; .status/events says which line: %w", mountpoint, err))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return withCode(exitTemporary, fmt.Errorf("the store of %s is full: what was imported is safe, do it again when there is room: %w", mountpoint, err))
	case errors.Is(err, os.ErrPermission):
		return withCode(exitPermission, fmt.Errorf("only root and the group of --status-group may import: %w", err))
	case errors.Is(err, syscall.ENOTCONN):
		return withCode(exitUnavailable, fmt.Errorf("the daemon of %s is gone: start it again, and do it once more: %w", mountpoint, err))
	}
	return withCode(exitIO, err)
}

// inOne imports all of a reader.
func (im *importer) inOne(r io.Reader) error {
	buf := make([]byte, 1<<20)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if e := im.Write(buf[:n]); e != nil {
				return withCode(importCode(e), e)
			}
		}
		if errors.Is(err, io.EOF) {
			err = im.Flush()
			return withCodeIf(importCode(err), err)
		}
		if err != nil {
			return withCode(exitIO, err)
		}
	}
}

func importCode(err error) int {
	if errors.Is(err, errBundle) {
		return exitData
	}
	return exitIO
}

func withCodeIf(code int, err error) error {
	if err == nil {
		return nil
	}
	return withCode(code, err)
}
