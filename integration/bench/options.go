package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// options are the settings of a run.
type options struct {
	full   bool     // the counts that a table for the README needs
	only   []string // scenarios; empty is all
	out    string   // directory for results and, while it runs, for all files
	readme string   // brought up to date from the results in out, and nothing else done
	rounds int      // of each comparison; 0 is that of the mode
	large  int      // messages of the outage; 0 is that of the mode
	each   int      // messages of each file of the outage

	contestant *regexp.Regexp // who takes part; nil is everybody

	cpost   string // sr3_cpost of Sarracenia's C client; empty if there is none
	against string // another build of spoolfs, which takes turns in closes and endToEnd
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	mode := flags.String("mode", "short", "short (minutes, to look), or full (hours, to quote)")
	only := flags.String("scenario", "", "which ones, with commas between: "+strings.Join(names(), ", "))
	flags.StringVar(&o.out, "out", "bin/bench", "directory for the results, on the disk that is to be measured")
	flags.StringVar(&o.readme, "readme", "", "write the table of the results into this file, and measure nothing")
	flags.IntVar(&o.rounds, "rounds", 0, "how often contestants take turns; the default is that of the mode")
	flags.StringVar(&o.against, "against", "", "path of another build of spoolfs, which takes turns with the rest in close and end")
	flags.StringVar(&o.cpost, "cpost", "", "path of Sarracenia's sr3_cpost, which takes part in process; it has to be built from its own repository")
	flags.Func("contestant", "a regular expression of the contestants of close and end that take part", func(text string) (err error) {
		o.contestant, err = regexp.Compile(text)
		return err
	})
	flags.IntVar(&o.large, "outage", 0, "messages of the outage; the default is that of the mode")
	flags.IntVar(&o.each, "records", 1, "messages of each file of a long outage, which is written faster with more")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q: there are no arguments", flags.Arg(0))
	}
	if o.full = *mode == "full"; !o.full && *mode != "short" {
		return o, fmt.Errorf("-mode=%s: short or full", *mode)
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	return o, o.validate()
}

func (o options) validate() error {
	for _, name := range o.only {
		if !slices.Contains(names(), name) {
			return fmt.Errorf("-scenario=%s: there are %s", name, strings.Join(names(), ", "))
		}
	}
	if o.rounds < 0 || o.large < 0 || o.each < 1 {
		return errors.New("-rounds, -outage and -records are numbers from 1 on")
	}
	for what, path := range map[string]string{"the other build": o.against, "sr3_cpost": o.cpost} {
		if path == "" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("find %s: %w", what, err)
		}
	}
	if o.readme == "" && os.Geteuid() != 0 {
		return errors.New("mounting needs root: run it as root")
	}
	return nil
}

func (o options) wants(scenario string) bool {
	return len(o.only) == 0 || slices.Contains(o.only, scenario)
}

// with adds the other build of spoolfs, if there is one, and leaves out who does not
// take part.
func (o options) with(contestants []string) []string {
	all := slices.Clone(contestants)
	if o.against != "" {
		all = append(all, otherBuild)
	}
	return slices.DeleteFunc(all, func(name string) bool { return o.contestant != nil && !o.contestant.MatchString(name) })
}

// count is a number of things: few in short runs.
func (o options) count(short, full int) int {
	if o.full {
		return full
	}
	return short
}

// turns is how often contestants take turns.
func (o options) turns(short, full int) int {
	if o.rounds > 0 {
		return o.rounds
	}
	return o.count(short, full)
}
