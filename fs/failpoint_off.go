//go:build !failpoints

package fs

import "github.com/hanwen/go-fuse/v2/fuse"

// failing has nothing fail: it is for tests, see failpoint_on.go.
func failing(raw fuse.RawFileSystem) fuse.RawFileSystem { return raw }
