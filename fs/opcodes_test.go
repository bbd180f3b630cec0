package fs

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"
)

// changing are the requests that change something, of include/uapi/linux/fuse.h;
// SYMLINK, MKNOD, LINK, the xattrs, FALLOCATE, COPY_FILE_RANGE and TMPFILE are
// refused.
var changing = []uint32{
	codeSetAttr, codeMkdir, codeUnlink, codeRmdir, codeOpen, codeWrite, codeRelease, codeFsync, codeFlush, codeCreate, codeRename,
}

// TestReplay_AllOperations: each operation that the protocol has is among the cases
// of TestReplay, or gives the same reply when it comes twice, and changes nothing the second time.
func TestReplay_AllOperations(t *testing.T) {
	const (
		forget, rename, initialize, interrupt, destroy, notifyReply, batchForget = 2, 12, 26, 36, 38, 41, 42
		statfs                                                                   = 17
		last                                                                     = 54
	)
	r := &rig{t: t, store: t.TempDir(), epoch: time.Unix(1e9, 0), opts: Options{Commands: map[string]Command{
		"count": {Run: func() error { return nil }},
	}}}
	r.start()
	defer r.stop()
	s := r.serveAgain(newScript())
	var tested []uint32
	for _, tt := range replayCases {
		func() {
			r := cutRig(t)
			defer r.stop()
			r.serveAgain(newScript())
			tested = append(tested, binary.LittleEndian.Uint32(tt.make(r, r.as(7))[4:]))
		}()
	}
	for op := uint32(1); op < last; op++ {
		switch {
		case slices.Contains(changing, op):
			if !slices.Contains(tested, op) {
				t.Errorf("operation %d is no case of TestReplay", op)
			}
			continue
		case slices.Contains([]uint32{forget, rename, initialize, interrupt, destroy, notifyReply, batchForget}, op):
			continue // without a reply, never sent twice, or never sent: RENAME2 is
		}
		u := r.as(7)
		f := u.mustCreate(fmt.Sprint("f", op))
		f.writeAt(line("000001"), 0)
		in := u.header(rootNode)
		request := encode(op, &in, string(make([]byte, 128))+"name\x00other\x00")
		first := r.execute(s, request, false)
		before := r.state()
		second := r.execute(s, again(request), true)
		if op == statfs { // the disk is used by others as well
			first, second = first[:16], second[:16]
		}
		if !sameReply(first, second) || len(first) < 16 {
			t.Errorf("operation %d: replies\n%x\n%x", op, first, second)
		}
		if after := r.state(); after != before {
			t.Errorf("operation %d: after the first\n%s\nafter the second\n%s", op, before, after)
		}
	}
}
