package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// defaultConfig is the file that is read if it is there and no other is named.
const defaultConfig = "/etc/spoolfs/spoolfs.yaml"

// mountpointKey is the one key that is no flag but an argument.
const mountpointKey = "mountpoint"

// configSet is what the files of a configuration say together. It answers kong
// for what is neither on the command line nor in the environment.
type configSet struct {
	files    []string // that were read
	settings map[string]setting
	all      []setting // also those that a later file replaces

	// routes are the settings of routes, by their names and keys, and ofRoutes
	// all of them.
	routes   map[string]map[string]setting
	ofRoutes []setting
}

var _ kong.Resolver = (*configSet)(nil)

// readConfig reads a file and, in the order of their names, its drop-ins,
// conf.d/*.yaml beside it. Of several settings of a key the last one holds.
func readConfig(path string, mustExist bool) (*configSet, error) {
	names, err := filepath.Glob(filepath.Join(globQuoted(filepath.Dir(path)), "conf.d", "*.yaml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	set := &configSet{settings: map[string]setting{}, routes: map[string]map[string]setting{}}
	var failed error
	for i, name := range append([]string{path}, names...) {
		settings, err := readConfigFile(name)
		if i == 0 && !mustExist && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		failed = errors.Join(failed, readAdvice(err))
		set.files = append(set.files, name)
		for _, s := range settings {
			set.settings[s.key] = s
			if s.key == routesKey {
				failed = errors.Join(failed, set.addRoutes(s))
			}
		}
		set.all = append(set.all, settings...)
	}
	return set, failed
}

// readAdvice says what to do about a file that cannot be read.
func readAdvice(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("configuration: %w: make it, or name another one with --config=FILE", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("configuration: %w: run it as a user who may read it, or use --config=/dev/null for none", err)
	}
	return err
}

// globQuoted is a path that filepath.Glob takes as it is.
func globQuoted(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// check refuses keys that nothing is known of, and values that do not fit.
// It says all that is wrong, not only the first.
func (c *configSet) check(flags map[string]*kong.Flag) error {
	var err error
	for _, s := range c.all {
		flag := flags[s.key]
		switch {
		case s.key == routesKey: // see addRoutes
		case s.key == mountpointKey:
			if s.node.Kind != yaml.ScalarNode || s.node.Value == "" {
				err = errors.Join(err, s.wrong("want a directory"))
			}
		case flag == nil:
			err = errors.Join(err, s.unknown(flags))
		default:
			err = errors.Join(err, s.checkValue(flag))
		}
	}
	for _, s := range c.ofRoutes {
		err = errors.Join(err, s.checkOfRoute(flags))
	}
	return err
}

// unknown says so, and what may be meant.
func (s setting) unknown(flags map[string]*kong.Flag) error {
	keys := []string{mountpointKey, routesKey}
	for key := range flags {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	if meant := suggest(s.key, keys); meant != "" {
		return fmt.Errorf("%s: unknown key %q, did you mean %q?", s.where(), s.key, meant)
	}
	return fmt.Errorf("%s: unknown key %q: see \"spoolfs mount --help\", a key is a flag with _ for -", s.where(), s.key)
}

// checkValue tries whether the flag takes the value.
func (s setting) checkValue(flag *kong.Flag) error {
	value, err := s.value()
	if err != nil {
		return err
	}
	target := reflect.New(flag.Target.Type()).Elem()
	if _, list := value.([]any); list && !flag.IsSlice() {
		return s.wrong("want one value, not a list")
	}
	scan := kong.Scan().PushTyped(value, kong.FlagValueToken)
	if err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, target); err != nil {
		return s.wrong("%s", wantOf(target, s.node.Value))
	}
	if enum := flag.EnumSlice(); flag.Enum != "" && !slices.Contains(enum, s.node.Value) {
		return s.wrong("want %s, not %q", orList(enum), s.node.Value)
	}
	return nil
}

// value is what kong gets: a text, or a list of them.
func (s setting) value() (any, error) {
	switch {
	case s.node.Kind == yaml.ScalarNode && s.node.Tag == "!!null":
		return nil, s.wrong(`has no value: remove the line, or write "" for an empty one`)
	case s.node.Kind == yaml.ScalarNode:
		return s.node.Value, nil
	case s.node.Kind != yaml.SequenceNode:
		return nil, s.wrong("want a value, not keys of its own")
	}
	list := []any{}
	for _, n := range s.node.Content {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return nil, setting{key: s.key, file: s.file, line: n.Line, node: n}.wrong("want a list of single values")
		}
		list = append(list, n.Value)
	}
	return list, nil
}

// texts is a value as a list, which check has let through.
func (s setting) texts() []string {
	if s.node.Kind == yaml.ScalarNode {
		return []string{s.node.Value}
	}
	var all []string
	for _, n := range s.node.Content {
		all = append(all, n.Value)
	}
	return all
}

// wantOf says what a value should be. Texts take all, so that what is quoted is
// no password.
func wantOf(target reflect.Value, got string) string {
	want := "want a value of another kind"
	switch _, isDuration := target.Interface().(interface{ Hours() float64 }); {
	case isDuration:
		want = wantDuration
	case strings.HasSuffix(target.Type().Name(), "Bytes"):
		want = wantSize
	case target.Kind() == reflect.Bool:
		want = "want true or false"
	case target.CanInt(), target.CanUint():
		want = "want a whole number"
	case target.CanFloat():
		want = "want a number such as 0.5"
	}
	return fmt.Sprintf("%s, not %q", want, got)
}

// orList is a list for people: a, b or c.
func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Validate is part of kong.Resolver: check has done it.
func (c *configSet) Validate(*kong.Application) error { return nil }

// Resolve is part of kong.Resolver. What is in the environment comes first.
func (c *configSet) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	s, ok := c.settings[keyOf(flag)]
	if !ok || flag.Tag.Get("config") == "-" || environmentOf(flag) != "" {
		return nil, nil
	}
	return s.value()
}

// keyOf is the key of a flag in files.
func keyOf(flag *kong.Flag) string { return strings.ReplaceAll(flag.Name, "-", "_") }

// environmentOf is the variable that sets a flag; empty if none does.
func environmentOf(flag *kong.Flag) string {
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return name
		}
	}
	return ""
}

// configKeys are the flags that can stand in a file, whatever command reads it:
// those of the daemon.
func configKeys(app *kong.Node) map[string]*kong.Flag {
	for _, command := range app.Children {
		if command.Name == "mount" {
			return configFlags(command)
		}
	}
	return nil
}

// configFlags are the flags of a command that can stand in a file, by their
// keys. A field with config:"-" cannot.
func configFlags(command *kong.Node) map[string]*kong.Flag {
	flags := map[string]*kong.Flag{}
	for _, flag := range command.Flags {
		if flag.Tag.Get("config") != "-" {
			flags[keyOf(flag)] = flag
		}
	}
	return flags
}
