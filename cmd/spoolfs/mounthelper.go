package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// The exit codes of mount(8).
const (
	mountWrongUse    = 1
	mountSystemError = 2
	mountInterrupted = 8
	mountFailed      = 32
)

// mountHelper is what mount(8) runs for a file system of the type fuse.spoolfs:
//
//	mount.fuse.spoolfs SOURCE DIRECTORY [-sfnv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE]
//
// It starts "spoolfs mount" in the background, and returns when the mount is
// usable.
type mountHelper struct {
	source, dir string
	options     []string // of -o, as they stand

	sloppy  bool // -s: pass over options that are not known
	fake    bool // -f: do all but the mount
	verbose bool // -v

	flags map[string]*kong.Flag // of "spoolfs mount", by their keys
	log   string                // where the log goes
	args  []string              // of "spoolfs mount"
}

// isMountHelper reports whether the program was called as mount(8) does.
func isMountHelper(name string) bool {
	name = filepath.Base(name)
	return name == "mount.fuse.spoolfs" || name == "mount.spoolfs"
}

// runMountHelper is the program under the helper's name. It returns an exit code
// of mount(8).
func runMountHelper(env *environment) int {
	h := &mountHelper{}
	err := h.run(env)
	if err == nil {
		return exitOK
	}
	name := "mount.fuse.spoolfs"
	if h.dir != "" {
		name += ": " + h.dir
	}
	fmt.Fprintf(env.stderr, "%s: %s\n", name, hidingPasswords(err.Error()))
	switch codeOf(err) {
	case exitUsage, exitConfig, exitPermission:
		return mountWrongUse
	case exitInternal:
		return mountSystemError
	case exitInterrupted:
		return mountInterrupted
	}
	return mountFailed
}

func (h *mountHelper) run(env *environment) error {
	if err := h.parse(env.args); err != nil {
		return withCode(exitUsage, err)
	}
	if err := h.translate(); err != nil {
		return withCode(exitUsage, err)
	}
	// Where the daemon will be: paths must mean the same to it.
	if err := os.Chdir("/"); err != nil {
		return err
	}
	c, err := loadMount(h.args)
	if err != nil {
		return err
	}
	if c.prints() {
		return withCode(exitUsage, errors.New(`the broker "stdout:" prints, and a mount in the background has nothing to print on: use "spoolfs mount" in a terminal`))
	}
	if h.verbose {
		fmt.Fprintf(env.stdout, "spoolfs %s\n", hidingPasswords(strings.Join(h.args, " ")))
	}
	if h.fake {
		return nil
	}
	return h.mount(env)
}

// parse reads the arguments.
func (h *mountHelper) parse(args []string) error {
	var words []string
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if len(arg) < 2 || arg[0] != '-' {
			words = append(words, arg)
			continue
		}
		// Short options: several may share a dash, and the last may have a value.
		for i, letter := range arg[1:] {
			if !strings.ContainsRune("oNt", letter) {
				if err := h.option(letter); err != nil {
					return err
				}
				continue
			}
			value := arg[i+2:]
			if value == "" {
				if len(args) == 0 {
					return fmt.Errorf("-%c needs a value", letter)
				}
				value, args = args[0], args[1:]
			}
			if err := h.optionWith(letter, value); err != nil {
				return err
			}
			break
		}
	}
	if len(words) != 2 {
		return errors.New("want: mount.fuse.spoolfs SOURCE DIRECTORY [-sfnv] [-o OPTIONS]")
	}
	dir, err := absolute(words[1])
	h.source, h.dir = words[0], dir
	return err
}

func (h *mountHelper) option(letter rune) error {
	switch letter {
	case 's':
		h.sloppy = true
	case 'f':
		h.fake = true
	case 'v':
		h.verbose = true
	case 'n': // not into /etc/mtab, where nothing of ours ever is
	default:
		return fmt.Errorf("-%c is not known", letter)
	}
	return nil
}

func (h *mountHelper) optionWith(letter rune, value string) error {
	switch letter {
	case 'o':
		options, err := splitOptions(value)
		h.options = append(h.options, options...)
		return err
	case 'N':
		return errors.New("-N is not supported: enter the namespace first, as with nsenter")
	}
	return nil // the type, which is ours
}

// splitOptions splits options at commas. A comma within a value has a backslash
// before it, or the value is in double quotes.
func splitOptions(text string) ([]string, error) {
	var options []string
	var one strings.Builder
	quoted, escaped := false, false
	for _, r := range text {
		switch {
		case escaped:
			one.WriteRune(r)
			escaped = false
		case r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		case r == ',' && !quoted:
			options = append(options, one.String())
			one.Reset()
		default:
			one.WriteRune(r)
		}
	}
	if quoted || escaped {
		return nil, fmt.Errorf("options end within a quote or an escape: %s", text)
	}
	options = append(options, one.String())
	return slices.DeleteFunc(options, func(o string) bool { return o == "" }), nil
}
