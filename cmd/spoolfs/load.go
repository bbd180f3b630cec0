package main

import "io"

// loadMount reads the command line of "spoolfs mount" with all that belongs to
// it, environment and files, once more.
func loadMount(args []string) (*mountCommand, error) {
	var c cli
	parser, err := newParser(&c, io.Discard, io.Discard, func() {})
	if err != nil {
		return nil, err
	}
	if _, err := parser.Parse(args); err != nil {
		return nil, parseError(err)
	}
	return &c.Mount, c.Mount.check()
}
