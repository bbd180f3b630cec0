package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// checkCommand are the flags of "spoolfs check": those of "spoolfs mount" and a
// few of its own.
type checkCommand struct {
	mountCommand `embed:""`

	Print bool `config:"-" help:"Print the configuration that is in force, as YAML with the origin of each value, passwords masked, and check its values only."`
	JSON  bool `name:"json" config:"-" help:"Print the findings as JSON."`
}

// errChecksFailed is the end of a check that has said already what is wrong.
var errChecksFailed = errors.New("something is wrong")

// Run is called by kong.
func (c *checkCommand) Run(env *environment) error {
	if c.Print {
		text, err := effectiveConfig(&c.mountCommand)
		if err != nil {
			return err
		}
		if _, err := env.stdout.Write(text); err != nil {
			return withCode(exitIO, err)
		}
		return c.origins.placed(c.checkValues())
	}
	report := &findings{}
	report.add(c.checkConfig()...)
	if report.code() == exitOK {
		report.add(c.checkStore()...)
		report.add(c.checkMountpoint()...)
		report.add(c.checkBrokers(env.ctx)...)
	}
	report.judge()
	if err := c.show(env, report); err != nil {
		return withCode(exitIO, err)
	}
	if !report.OK {
		return withCode(report.code(), errChecksFailed)
	}
	return nil
}

func (c *checkCommand) show(env *environment, report *findings) error {
	if c.JSON {
		_, err := env.stdout.Write(jsonText(report))
		return err
	}
	return report.write(env.stdout)
}

// checkConfig says which files were read, and what is wrong with the values.
func (c *checkCommand) checkConfig() []finding {
	const name = "configuration"
	if err := c.mountCommand.check(); err != nil {
		return []finding{failed(name, codeOf(err), "", "%s", err)}
	}
	found := []finding{good(name, "%s", c.describeFiles())}
	if from := c.origins["broker"]; c.hasPassword() && (from == "--broker" || c.othersRead(from)) {
		found = append(found, warned(name, "put the password in a file of its own, which only the daemon may read, and name it in password_file",
			"the password in broker (%s) can be read by other users", from))
	}
	return found
}

func (c *checkCommand) describeFiles() string {
	if len(c.files.files) == 0 {
		return "no file is read: flags, environment and defaults only"
	}
	return "read " + strings.Join(c.files.files, ", ")
}

// hasPassword reports whether a broker's URL has one.
func (f *brokerFlags) hasPassword() bool {
	for _, b := range f.Broker {
		if from, to := passwordIn(b); from < to {
			return true
		}
	}
	return false
}

// othersRead reports whether the file of an origin can be read by any user.
func (c *checkCommand) othersRead(origin string) bool {
	for _, file := range c.files.files {
		if strings.HasPrefix(origin, file+":") {
			info, err := os.Stat(file)
			return err == nil && info.Mode().Perm()&0o004 != 0
		}
	}
	return false
}

// permissionCode is the exit code of what the disk said.
func permissionCode(err error, other int) int {
	if errors.Is(err, os.ErrPermission) {
		return exitPermission
	}
	return other
}

// plural is a number of things.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
