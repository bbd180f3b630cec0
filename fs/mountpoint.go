package fs

import "spoolfs/fs/device"

// ResolveMountpoint returns the path of the directory that Mount mounts on,
// without links. It does not ask what may be mounted there.
func ResolveMountpoint(dir string) (string, error) { return device.ResolveParent(dir) }
