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

// configured are the files of a command that reads the configuration, and where
// its settings come from.
type configured struct {
	Config string `config:"-" placeholder:"FILE" help:"Configuration, as YAML: a key for each flag of spoolfs mount, with _ for -. The files conf.d/*.yaml beside it come after it. The default is /etc/spoolfs/spoolfs.yaml, if it is there."`

	files   *configSet
	origins origins
	routes  []*routeConfig // besides that of the root, sorted by name
}

// BeforeResolve is called by kong when the command line is read and its values
// are not set yet. It reads the files, which may have any key of the daemon.
func (c *configured) BeforeResolve(ctx *kong.Context) error {
	path := ""
	for _, flag := range ctx.Selected().Flags {
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
		err = errors.Join(err, set.check(configKeys(ctx.Model.Node)))
	}
	if err != nil {
		return withCode(exitConfig, err)
	}
	c.files = set
	ctx.AddResolver(set)
	return nil
}

// note notes where each value comes from.
func (c *configured) note(ctx *kong.Context) {
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
}

// fillInStore takes a store that is not named anywhere from systemd.
func (c *configured) fillInStore(store *string) {
	if *store == "" {
		if dir := firstPath(os.Getenv("STATE_DIRECTORY")); dir != "" {
			*store, c.origins["store"] = dir, "STATE_DIRECTORY"
		}
	}
}

// AfterApply is called by kong when all values are set. It notes where each
// comes from, and fills in what is neither on the command line, nor in the
// environment, nor in a file: the mountpoint, which is no flag, and the store.
func (c *mountCommand) AfterApply(ctx *kong.Context) error {
	c.note(ctx)
	if err := c.makeRoutes(&c.routeFlags, configKeys(ctx.Model.Node)); err != nil {
		return err
	}
	c.origins[mountpointKey] = originArgument
	s, inFile := c.files.settings[mountpointKey]
	switch _, inEnvironment := os.LookupEnv(mountpointEnv); {
	case inEnvironment && c.Mountpoint == os.Getenv(mountpointEnv):
		c.origins[mountpointKey] = mountpointEnv
	case c.Mountpoint == "" && inFile:
		c.Mountpoint, c.origins[mountpointKey] = s.node.Value, s.where()
	}
	c.fillInStore(&c.Store)
	return nil
}
