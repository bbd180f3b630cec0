package integration

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// TestMount_DiskFree: df shows the limit of the queue and how much of it is used,
// in blocks of one size, so that programs which look before they write do not
// think the disk full (F12 of the reports of others).
func TestMount_DiskFree(t *testing.T) {
	const limit = 8 << 20
	s := startSpool(t, deadBroker, "--exchange", "x", "--max-bytes", "8MiB")
	look := func() syscall.Statfs_t {
		t.Helper()
		var st syscall.Statfs_t
		if err := syscall.Statfs(s.dir, &st); err != nil {
			t.Fatal(err)
		}
		if st.Bsize != st.Frsize || st.Namelen != 255 || st.Bfree != st.Bavail || st.Bfree > st.Blocks {
			t.Errorf("statfs is %+v", st)
		}
		return st
	}
	empty := look()
	if got := int64(empty.Blocks) * empty.Bsize; got != limit || empty.Bfree != empty.Blocks {
		t.Errorf("an empty mount has %d bytes of %d free, want %d", int64(empty.Bfree)*empty.Bsize, got, limit)
	}
	s.sh(fmt.Sprintf(`for i in $(seq 2000); do echo '%s'; done > $M/f`, record(strings.Repeat("a", 200))))
	s.untilIngested(2000)
	full := look()
	used := int64(full.Blocks-full.Bfree) * full.Bsize
	if stored := int64(s.status().Queue.Bytes); full.Blocks != empty.Blocks || used < stored-2*full.Bsize || used > stored+2*full.Bsize || stored < 400_000 {
		t.Errorf("%d bytes are used of %d blocks, the queue has %d", used, full.Blocks, stored)
	}
	s.sh(`df $M >/dev/null && df -i $M >/dev/null`)
}
