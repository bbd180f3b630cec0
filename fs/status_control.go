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

// write runs the commands that an operator writes to ctl: on each line words
// without arguments, or one word and its arguments. If a word is unknown none is
// run.
func (t *statusTree) write(in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	if h := t.sinkOf(in.Fh); h != nil {
		return t.writeSink(h, in, data)
	}
	if parseStatusID(in.NodeId).kind != kindControl {
		return 0, fuse.EBADF
	}
	if n, done := t.fs.doneBefore(&in.InHeader); done {
		return uint32(n), fuse.OK
	}
	var calls []func() error
	for line := range strings.Lines(string(data)) {
		more, err := t.parseCommands(strings.Fields(line), in.Uid)
		if err != nil {
			return 0, t.fs.status(err)
		}
		calls = append(calls, more...)
	}
	for _, call := range calls {
		if err := call(); err != nil {
			return 0, t.fs.status(err)
		}
	}
	t.fs.carriedOut(in.Unique, uint64(len(data)))
	return uint32(len(data)), fuse.OK
}

// parseCommands returns what the words of a line do.
func (t *statusTree) parseCommands(words []string, uid uint32) ([]func() error, error) {
	var calls []func() error
	for i, word := range words {
		c, ok := t.fs.opts.Commands[word]
		begins := c.Begin != nil && (c.Run == nil || len(words) > 1 && strings.Contains(words[1], "="))
		switch {
		case !ok || begins && i > 0:
			return nil, fmt.Errorf("command %q: %w", word, syscall.EINVAL)
		case begins:
			return []func() error{func() error {
				t.fs.opts.Logger.Info("command", "word", word, "arguments", words[1:], "uid", uid)
				return c.Begin(words[1:], uid)
			}}, nil
		}
		calls = append(calls, func() error {
			t.fs.opts.Logger.Info("command", "word", word, "uid", uid)
			return c.Run()
		})
	}
	return calls, nil
}
