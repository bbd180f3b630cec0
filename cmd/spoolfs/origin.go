package main

import (
	"errors"
	"os"

	"github.com/alecthomas/kong"
)

// origins says where the value of each key comes from: "--window", the name of
// a variable of the environment, file:line, or "default".
type origins map[string]string

const (
	originDefault  = "default"
	originArgument = "argument"
	mountpointEnv  = "SPOOLFS_MOUNTPOINT"
)

// BeforeResolve is called by kong when the command line is read and its values
// are not set yet. It reads the files.
func (c *mountCommand) BeforeResolve(ctx *kong.Context) error {
	command := ctx.Selected()
	path := ""
	for _, flag := range command.Flags {
		if flag.Name == "config" {
			path, _ = ctx.FlagValue(flag).(string)
		}
	}
	named := path != ""
	if !named {
		path = defaultConfig
	}
	set, err := readConfig(path, named)
	if set != nil {
		err = errors.Join(err, set.check(configFlags(command)))
	}
	if err != nil {
		return withCode(exitConfig, err)
	}
	c.files = set
	ctx.AddResolver(set)
	return nil
}

// AfterApply is called by kong when all values are set. It notes where each
// comes from, and fills in what is neither on the command line, nor in the
// environment, nor in a file.
func (c *mountCommand) AfterApply(ctx *kong.Context) error {
	given := map[string]bool{}
	for _, p := range ctx.Path {
		if p.Flag != nil && !p.Resolved {
			given[p.Flag.Name] = true
		}
	}
	c.origins = origins{}
	for key, flag := range configFlags(ctx.Selected()) {
		c.origins[key] = originDefault
		switch s, inFile := c.files.settings[key]; {
		case given[flag.Name]:
			c.origins[key] = "--" + flag.Name
		case environmentOf(flag) != "":
			c.origins[key] = environmentOf(flag)
		case inFile:
			c.origins[key] = s.where()
		}
	}
	c.fillIn()
	return nil
}

// fillIn takes the mountpoint from a file, and the store from systemd.
func (c *mountCommand) fillIn() {
	c.origins[mountpointKey] = originArgument
	s, inFile := c.files.settings[mountpointKey]
	switch _, inEnvironment := os.LookupEnv(mountpointEnv); {
	case inEnvironment && c.Mountpoint == os.Getenv(mountpointEnv):
		c.origins[mountpointKey] = mountpointEnv
	case c.Mountpoint == "" && inFile:
		c.Mountpoint, c.origins[mountpointKey] = s.node.Value, s.where()
	}
	if c.Store == "" {
		if dir := firstPath(os.Getenv("STATE_DIRECTORY")); dir != "" {
			c.Store, c.origins["store"] = dir, "STATE_DIRECTORY"
		}
	}
}
