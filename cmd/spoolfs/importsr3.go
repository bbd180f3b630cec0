package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// importSR3Command is "spoolfs import-sr3".
type importSR3Command struct {
	Files []string `arg:"" name:"file" help:"Post configurations of Sarracenia, such as ~/.config/sr3/cpost/x.conf. The first becomes the default route."`
}

// Help is shown below the flags.
func (importSR3Command) Help() string {
	return `What is printed is a configuration for --config=FILE, without passwords. Each line that could not be carried over is in it as a comment, with the reason.

Examples:
  spoolfs import-sr3 ~/.config/sr3/cpost/site.conf > /etc/spoolfs/spoolfs.yaml
  spoolfs check --config /etc/spoolfs/spoolfs.yaml --store /var/lib/spoolfs /run/spool`
}

// Run is called by kong.
func (c *importSR3Command) Run(env *environment) error {
	return importSR3(c.Files, hostOfSR3(), env.stdout, env.stderr)
}

// importSR3 prints what post configurations say as a configuration of ours.
func importSR3(files []string, host sr3Host, stdout, stderr io.Writer) error {
	var out sr3Writer
	for i, file := range files {
		post, err := readSR3(file, host)
		if err != nil {
			return withCode(exitNoInput, fmt.Errorf("read Sarracenia's configuration: %w", err))
		}
		post.convert()
		if i == 0 {
			out.route("", post)
		} else {
			out.route(routeName(file), post)
		}
	}
	if _, err := io.WriteString(stdout, out.String()); err != nil {
		return withCode(exitIO, err)
	}
	if out.lost > 0 {
		fmt.Fprintf(stderr, "spoolfs: lines that are not carried over: %d, each with its reason in a comment\n", out.lost)
	}
	return nil
}

// exitNoInput is that of sysexits.h for an input that cannot be read.
const exitNoInput = 66

// routeName is that of the route of a file.
func routeName(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), ".conf")
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || strings.ContainsRune(`/:#"'{}[],&*!|>%@`, r) {
			return '_'
		}
		return r
	}, name)
}

// sr3Host is what a configuration can refer to besides itself.
type sr3Host struct {
	name      string
	configDir string // ~/.config/sr3
	env       func(name string) (value string, ok bool)
}

func hostOfSR3() sr3Host {
	dir, err := os.UserConfigDir()
	if err != nil {
		dir = "/etc"
	}
	return sr3Host{name: hostName(), configDir: filepath.Join(dir, "sr3"), env: os.LookupEnv}
}
