package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// programs are the paths of what is measured and of what measures, built anew.
type programs struct {
	spoolfs, floor            string
	writer, spawn, post, null string
}

// sources are those in C, and the libraries that they need.
const sources = "integration/bench/c"

// build compiles all into dir. The working directory is that of the checkout.
func build(ctx context.Context, dir string) (*programs, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	p := &programs{}
	for _, g := range []struct {
		path *string
		pkg  string
	}{{&p.spoolfs, "spoolfs/cmd/spoolfs"}, {&p.floor, "spoolfs/integration/bench/floor"}} {
		*g.path = filepath.Join(dir, filepath.Base(g.pkg))
		if err := compile(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", *g.path, g.pkg); err != nil {
			return nil, err
		}
	}
	for _, c := range []struct {
		path    *string
		name    string
		library string // a package of pkg-config
	}{{&p.writer, "writer", ""}, {&p.spawn, "spawn", ""}, {&p.post, "post", "librabbitmq"}, {&p.null, "null", "fuse3"}} {
		*c.path = filepath.Join(dir, c.name)
		if err := compileC(ctx, *c.path, filepath.Join(sources, c.name+".c"), c.library); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func compileC(ctx context.Context, to, source, library string) error {
	args := []string{"-O2", "-Wall", "-o", to, source}
	if library != "" {
		flags, err := exec.CommandContext(ctx, "pkg-config", "--cflags", "--libs", library).Output()
		if err != nil {
			return fmt.Errorf("find the library %s: %w (.ci/install bench)", library, err)
		}
		args = append(args, strings.Fields(string(flags))...)
	}
	return compile(ctx, "gcc", args...)
}

func compile(ctx context.Context, compiler string, args ...string) error {
	if out, err := exec.CommandContext(ctx, compiler, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", compiler, strings.Join(args, " "), err, out)
	}
	return nil
}
