package main

import (
	"fmt"
	"runtime/debug"
)

// release is set by the linker in released binaries.
var release string

// version is the release, or the revision that the program was built from.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return "devel"
}

// versionCommand prints the version.
type versionCommand struct{}

// Run is called by kong.
func (*versionCommand) Run(env *environment) error {
	fmt.Fprintln(env.stdout, "spoolfs", version())
	return nil
}
