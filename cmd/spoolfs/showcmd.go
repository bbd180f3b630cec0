package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"

	"github.com/alecthomas/kong"
)

// showCommand is "spoolfs dead show" and its like.
type showCommand struct {
	Body bool `env:"-" xor:"form" help:"The body alone, as it is."`
	JSON bool `name:"json" env:"-" xor:"form" help:"Print a line of JSON for each, with the body as body or body_base64."`
	idsAndMount
}

// Help is shown by kong.
func (*showCommand) Help() string {
	return `What is known of the message as lines of a key and a value, an empty line,
and the body.

Examples:

    spoolfs dead show 21408219f26926da57ecc5c2a3a7c7f5-1
    spoolfs dead show --body 21408219f26926da57ecc5c2a3a7c7f5-1 | jq .
`
}

// Run is called by kong.
func (c *showCommand) Run(env *environment, k *kong.Context) error {
	ids, t := c.split()
	if len(ids) == 0 {
		return withCode(exitUsage, errors.New("say which: give one or more IDs, as \"spoolfs "+kindOf(k)+" ls\" shows them"))
	}
	cl, err := t.open(env)
	if err != nil {
		return err
	}
	defer cl.close()
	routes, err := cl.routeNames("")
	if err != nil {
		return err
	}
	for _, id := range ids {
		path, text, err := cl.locate(kindOf(k), id, routes, kindDirs[kindOf(k)])
		if err == nil {
			err = c.print(env, path, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *showCommand) print(env *environment, path string, text []byte) (err error) {
	switch {
	case c.JSON:
		dir := filepath.Dir(path)
		m := parseListed(filepath.Base(filepath.Dir(dir)), filepath.Base(dir), text)
		err = json.NewEncoder(env.stdout).Encode(m.withBody(text))
	case c.Body:
		_, body, _ := bytes.Cut(text, []byte("\n\n"))
		_, err = env.stdout.Write(body)
	default:
		_, err = env.stdout.Write(text)
	}
	if err != nil {
		return withCode(exitIO, err)
	}
	return nil
}
