package fs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

func (t *statusTree) controlEntry() statusEntry {
	id := statusID{kind: kindControl}
	return t.snapshot(id, t.help, t.began).entry(id)
}

// helpText lists the commands.
func helpText(commands map[string]Command) []byte {
	var b strings.Builder
	for _, word := range slices.Sorted(maps.Keys(commands)) {
		fmt.Fprintf(&b, "%s %s\n", word, commands[word].Help)
	}
	return []byte(b.String())
}

// write runs the commands that an operator writes to ctl. If one of them is
// unknown none is run.
func (t *statusTree) write(in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	if t.openFile(in.Fh) == nil || parseStatusID(in.NodeId).kind != kindControl {
		return 0, fuse.EBADF
	}
	words := strings.Fields(string(data))
	for _, word := range words {
		if _, ok := t.fs.opts.Commands[word]; !ok {
			return 0, fuse.Status(syscall.EINVAL)
		}
	}
	for _, word := range words {
		t.fs.opts.Logger.Info("command", "word", word, "uid", in.Uid)
		if err := t.fs.opts.Commands[word].Run(); err != nil {
			return 0, t.fs.status(err)
		}
	}
	return uint32(len(data)), fuse.OK
}
