package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// generic are the options of every mount that need no doing: they are for
// mount(8), systemd or automount, or are what a spool is anyway.
var generic = map[string]bool{
	"defaults": true, "rw": true, "auto": true, "noauto": true, "nofail": true, "_netdev": true,
	"user": true, "nouser": true, "users": true, "nousers": true, "owner": true, "noowner": true, "group": true, "nogroup": true,
	"dev": true, "nodev": true, "suid": true, "nosuid": true, "exec": true, "noexec": true,
	"async": true, "sync": true, "dirsync": true, "mand": true, "nomand": true, "silent": true, "loud": true, "quiet": true,
	"atime": true, "noatime": true, "diratime": true, "nodiratime": true, "relatime": true, "norelatime": true,
	"strictatime": true, "nostrictatime": true, "lazytime": true, "nolazytime": true, "iversion": true, "noiversion": true,
	"allow_other": true, "comment": true, "helper": true, "uhelper": true, "subtype": true, "pri": true,
}

// impossible are options that ask for what a spool is not.
var impossible = map[string]string{
	"ro":      "nobody could write into it: leave out ro",
	"remount": `settings change with the configuration file and SIGHUP ("systemctl reload"), and not by a remount`,
}

// translate makes the command line of "spoolfs mount" of the options.
func (h *mountHelper) translate() error {
	if err := h.readFlags(); err != nil {
		return err
	}
	h.args = []string{"mount", "--source=" + h.source}
	if filepath.IsAbs(h.source) {
		h.args = append(h.args, "--config="+h.source)
	}
	var brokers []string
	for _, option := range h.options {
		key, value, hasValue := strings.Cut(option, "=")
		key = strings.ReplaceAll(key, "-", "_")
		switch {
		case key == "broker" && hasValue:
			brokers = append(brokers, value)
		case key == "log" && hasValue:
			h.log = value
		case key == "fsname" && hasValue:
			h.args = append(h.args, "--source="+value)
		default:
			if err := h.flag(option, key, value, hasValue); err != nil {
				return err
			}
		}
	}
	if len(brokers) > 0 {
		// Not among the arguments, which everybody sees.
		if err := os.Setenv("SPOOLFS_BROKER", strings.Join(brokers, " ")); err != nil {
			return err
		}
	}
	h.args = append(h.args, h.dir)
	return nil
}

// readFlags finds out what "spoolfs mount" takes.
func (h *mountHelper) readFlags() error {
	var c cli
	parser, err := newParser(&c, io.Discard, io.Discard, func() {})
	if err != nil {
		return err
	}
	for _, command := range parser.Model.Children {
		if command.Name == "mount" {
			h.flags = configFlags(command)
			for _, flag := range command.Flags {
				if flag.Name == "config" {
					h.flags["config"] = flag
				}
			}
			return nil
		}
	}
	return errors.New("this program has no command \"mount\"")
}

// flag makes a flag of an option.
func (h *mountHelper) flag(option, key, value string, hasValue bool) error {
	negative := strings.TrimPrefix(strings.TrimPrefix(key, "no"), "_")
	flag, known := h.flags[key]
	switch {
	case strings.HasPrefix(key, "x_"), strings.HasPrefix(key, "X_"):
		return nil
	case known && (hasValue || flag.IsBool()):
		h.args = append(h.args, "--"+flag.Name+assigned(value, hasValue))
		return nil
	case generic[key]: // "user" is, and "user=NAME" is a flag
		return nil
	case known:
		return fmt.Errorf("the option %s needs a value: %s=…", option, option)
	case !hasValue && h.negatable(negative):
		h.args = append(h.args, "--no-"+h.flags[negative].Name)
		return nil
	case impossible[key] != "":
		return fmt.Errorf("the option %s cannot be: %s", option, impossible[key])
	case h.sloppy:
		return nil
	}
	err := fmt.Errorf("the option %q is not known; each flag of \"spoolfs mount\" is one, without the dashes", option)
	if meant := suggest(key, slices.Sorted(maps.Keys(h.flags))); meant != "" {
		err = fmt.Errorf("the option %q is not known, did you mean %q?", option, meant)
	}
	return err
}

func (h *mountHelper) negatable(key string) bool {
	flag, known := h.flags[key]
	return known && flag.Tag.Negatable != ""
}

func assigned(value string, hasValue bool) string {
	if !hasValue {
		return ""
	}
	return "=" + value
}
