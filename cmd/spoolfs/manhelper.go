package main

import (
	"maps"
	"slices"
	"strings"
)

// helperPage is the manual page of the program under the name that mount(8) knows
// it by.
func helperPage() string {
	p := newManPage("mount.fuse.spoolfs", "8", "Mount a spool from fstab, autofs or mount(8)")
	p.head("SYNOPSIS")
	p.text("**mount -t fuse.spoolfs** [*-o OPTION*[,*OPTION* ...]] *SOURCE* *DIRECTORY*")
	p.head("DESCRIPTION")
	p.text("Starts **spoolfs-mount**(8) in the background, and returns when a file can be written. *SOURCE* is the configuration file if it begins with /, else any word, such as none. " +
		"**umount**(8) ends the daemon.")
	p.head("OPTIONS")
	p.item("*FLAG*=*VALUE*, *FLAG*, no*FLAG*", "Each flag of **spoolfs-mount**(8), without the dashes; - and _ are the same. "+
		"A comma in a value has a backslash before it, or the value is in double quotes. What may be given more than once is an option of its own each time. "+
		"Everybody reads fstab: a password belongs into a file of its own.")
	p.item("config=*FILE*", "The configuration file.")
	p.item("log=*FILE*", "File of the log. The default, **syslog**, is the system's log, through **logger**(1).")
	p.item("fsname=*NAME*", "What the mount is said to be of, instead of *SOURCE*.")
	p.text("Passed over, as they are for others, or are so anyway: " + escaped(strings.Join(slices.Sorted(maps.Keys(generic)), ", ")) + ", x-*. Refused: " +
		strings.Join(slices.Sorted(maps.Keys(impossible)), ", ") + ", and what is not known, unless **mount -s** is used. **-f** does all but the mount.")
	p.head("EXIT STATUS")
	p.text("0, or one of **mount**(8): 1 wrong use or configuration, 2 a fault of the system, 8 interrupted, 32 not mounted.")
	p.head("SEE ALSO")
	p.text("**spoolfs-mount**(8), **spoolfs.yaml**(5), **fstab**(5)")
	return p.String()
}
