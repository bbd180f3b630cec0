package packaging_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// work is a directory with two builds of this tree, made in two directories as of
// one commit, and one of a later version:
//
//	first/out second/out later
var work string

const laterVersion = "0.1.999"

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "spoolfs-packages-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	work = dir
	if err := buildAll(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func buildAll() error {
	for _, name := range []string{"first", "second"} {
		if err := copyTree(filepath.Join(work, name)); err != nil {
			return err
		}
		var more []string
		if name == "second" && os.Getenv("SPOOLFS_CHAOS") != "" {
			more = append(more, "GOCACHE="+filepath.Join(work, "cache")) // all is compiled again
		}
		if err := build(name, "out", more...); err != nil {
			return err
		}
	}
	return build("first", "../later", "VERSION="+laterVersion)
}

func build(tree, out string, env ...string) error {
	cmd := exec.Command("cmd/spoolfs/package/build", out)
	cmd.Dir = filepath.Join(work, tree)
	cmd.Env = append(os.Environ(), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, text)
	}
	return nil
}

// copyTree copies what belongs to the project, as of now, and makes a commit of it
// that is the same everywhere.
func copyTree(to string) error {
	root, err := filepath.Abs("../../..")
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"cp", "-r", "--", filepath.Join(root, "cmd"), filepath.Join(root, "fs"), filepath.Join(root, "queue"), filepath.Join(root, "publisher"),
			filepath.Join(root, "go.mod"), filepath.Join(root, "go.sum"), filepath.Join(root, "README.md"), to},
		{"git", "-C", to, "init", "--quiet"},
		{"git", "-C", to, "add", "--all"},
		{"git", "-C", to, "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "--no-gpg-sign", "--message=test"},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE=2026-11-30T12:00:00Z", "GIT_COMMITTER_DATE=2026-11-30T12:00:00Z", "GIT_CONFIG_GLOBAL=/dev/null")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", args, err, text)
		}
	}
	return nil
}

// output runs a command and returns what it prints.
func output(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, &stderr)
	}
	return string(out)
}

// one is the only file of a pattern in the working directory.
func one(t testing.TB, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(work, pattern))
	if err != nil || len(names) != 1 {
		t.Fatalf("%s: %v %v", pattern, names, errors.Join(err))
	}
	return names[0]
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}
