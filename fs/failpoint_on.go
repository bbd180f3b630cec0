//go:build failpoints

package fs

import (
	"os"
	"strings"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// failing makes a program that is built with the tag failpoints fail at files
// whose names ask for it, as a bug would have it: one that begins with "crash."
// ends the process when it is created, and one that begins with "hang." is never
// answered. No program that is shipped has this.
func failing(raw fuse.RawFileSystem) fuse.RawFileSystem { return &failures{raw} }

type failures struct{ fuse.RawFileSystem }

// Create fails, or creates a file.
func (f *failures) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	switch {
	case strings.HasPrefix(name, "crash."):
		os.Exit(3)
	case strings.HasPrefix(name, "hang."):
		select {}
	}
	return f.RawFileSystem.Create(cancel, in, name, out)
}
