package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// liveExport reads the store of a running daemon, a page at a time.
type liveExport struct {
	client *client

	// take takes the lines of a page.
	take func(lines []byte) error
}

// run reads all pages.
func (x *liveExport) run() error {
	end, err := x.page("")
	for err == nil && end.Next != "" {
		end, err = x.page(end.Next)
	}
	return err
}

// How often a page is read that does not come whole, and the wait in between: the
// daemon may have been replaced meanwhile.
const (
	pageTries = 100
	pagePause = 100 * time.Millisecond
)

func (x *liveExport) page(key string) (pageEnd, error) {
	name := "export"
	if key != "" {
		name += "." + key
	}
	for range pageTries {
		text, err := x.client.read(name)
		switch lines, end, ok := splitPage(text); {
		case err == nil && ok && end.Key == key:
			return end, x.take(lines)
		case err != nil && !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.ESTALE): // as those of a page that a former daemon has begun
			return pageEnd{}, err
		}
		timer := time.NewTimer(pagePause)
		select {
		case <-timer.C:
		case <-x.client.ctx.Done():
			timer.Stop()
			return pageEnd{}, withCode(exitTemporary, errors.New("interrupted: the bundle is cut; what it has can be imported"))
		}
	}
	return pageEnd{}, withCode(exitTemporary, fmt.Errorf("the daemon of %s does not give %s whole: it is of another version than this program, or is replaced again and again; try again", x.client.mount.Mountpoint, name))
}

// splitPage takes the last line off a page, and reports whether it is whole.
func splitPage(text []byte) (lines []byte, end pageEnd, ok bool) {
	if len(text) == 0 || text[len(text)-1] != '\n' {
		return nil, end, false
	}
	cut := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
	lines = text[:cut]
	sum := sha256.Sum256(lines)
	err := json.Unmarshal(text[cut:], &end)
	return lines, end, err == nil && end.Format == pageFormat && end.Sum == hex.EncodeToString(sum[:])
}

// exportLive writes what a running daemon holds.
func (c *exportCommand) exportLive(env *environment) error {
	cl, err := c.target.open(env)
	if err != nil {
		return err
	}
	defer cl.close()
	s, err := cl.status()
	if err != nil {
		return err
	}
	w := newExportWriter(env.stdout, c.Format, cl.mount.Mountpoint)
	x := &liveExport{cl, w.lines}
	if err = errors.Join(x.run(), w.flush()); err != nil {
		return err
	}
	if s.Publisher.State != "paused" {
		fmt.Fprintln(env.stderr, "the daemon was at work meanwhile: what has changed its state may be missing, or be there twice with the same id; \"spoolfs pause\" first makes it whole")
	}
	if s.FS.HeldFiles > 0 {
		fmt.Fprintf(env.stderr, "not exported: %d files with temporary names\n", s.FS.HeldFiles)
	}
	return w.verdict()
}
