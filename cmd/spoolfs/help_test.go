package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestHelp compares the help of every command with a golden file, so that a change
// of the command line is seen; and commands with flags have examples.
func TestHelp(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	var c cli
	parser, err := newParser(&c, io.Discard, io.Discard, func() {})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	var walk func(n *kong.Node, words []string)
	walk = func(n *kong.Node, words []string) {
		name := strings.Join(append([]string{"spoolfs"}, words...), "-") + ".txt"
		known[name] = true
		var out, errs bytes.Buffer
		env := &environment{ctx: t.Context(), args: append(words[:len(words):len(words)], "--help"), stdout: &out, stderr: &errs}
		if code := run(env); code != exitOK || errs.Len() > 0 {
			t.Errorf("%s: exit code %d, %s", name, code, &errs)
		}
		golden(t, "help/"+name, out.String())
		if len(n.Children) == 0 && len(n.Flags) > 0 && !strings.Contains(n.Detail, "Examples:") {
			t.Errorf("%s: the help has no examples", name)
		}
		for _, child := range n.Children {
			if !child.Hidden {
				walk(child, append(words[:len(words):len(words)], child.Name))
			}
		}
	}
	walk(parser.Model.Node, nil)
	files, err := os.ReadDir(filepath.Join("testdata", "help"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f.Name()] {
			t.Errorf("testdata/help/%s is of no command", f.Name())
		}
	}
}
