package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// options are the settings of the demo.
type options struct {
	program string // path of spoolfs; default bin/spoolfs
	writers int    // processes, half bash and half python; default 32
	files   int    // of all writers together; default 1,000
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.program, "spoolfs", "bin/spoolfs", "path of the program spoolfs")
	flags.IntVar(&o.writers, "writers", 32, "processes that write at a time, half of them bash, half python")
	flags.IntVar(&o.files, "files", 1000, "files that they write, all together")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q: there are no arguments", flags.Arg(0))
	}
	return o, o.validate()
}

// validate refuses what cannot work before anything is started.
func (o options) validate() error {
	if o.writers < 2 {
		return fmt.Errorf("-writers=%d: at least two, one bash and one python", o.writers)
	}
	if o.files < o.writers {
		return fmt.Errorf("-files=%d: at least one for each of %d writers", o.files, o.writers)
	}
	if _, err := os.Stat(o.program); err != nil {
		return fmt.Errorf("find spoolfs: %w (make build)", err)
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return errors.New("there is no /dev/fuse here: load the fuse module, or give the container the device")
	}
	for _, needed := range []string{"bash", "python3"} {
		if _, err := exec.LookPath(needed); err != nil {
			return fmt.Errorf("find %s: %w (make deps)", needed, err)
		}
	}
	return nil
}

// jobs shares the files out.
func (o options) jobs(dir string) []job {
	jobs := make([]job, o.writers)
	next := 0
	for i := range jobs {
		count := o.files / o.writers
		if i < o.files%o.writers {
			count++
		}
		jobs[i] = job{dir: dir, writer: i, first: next, count: count}
		next += count
	}
	return jobs
}
