package main

import (
	"embed"
	"fmt"
	"io"
	"strings"
)

// completionCommand is "spoolfs completion".
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

//go:embed completion
var completionScripts embed.FS

// Help is shown by kong.
func (*completionCommand) Help() string {
	return `Examples:

    eval "$(spoolfs completion bash)"                 # this shell
    spoolfs completion bash > /etc/bash_completion.d/spoolfs
    spoolfs completion zsh > "${fpath[1]}/_spoolfs"
    spoolfs completion fish > ~/.config/fish/completions/spoolfs.fish
`
}

// Run is called by kong.
func (c *completionCommand) Run(env *environment) error {
	script, err := completionScripts.ReadFile("completion/" + c.Shell)
	if err != nil {
		return err
	}
	if _, err := env.stdout.Write(script); err != nil {
		return withCode(exitIO, err)
	}
	return nil
}

// completeCommand answers the scripts: the kind of what may stand for the last
// word, and, if it is words, a line for each.
type completeCommand struct {
	Words []string `arg:"" optional:""`
}

// Run is called by kong.
func (c *completeCommand) Run(env *environment) error {
	if len(c.Words) == 0 {
		return nil
	}
	shell, words := c.Words[0], c.Words[1:]
	if shell == "bash" {
		words = joinAssignments(words)
	}
	var model cli
	parser, err := newParser(&model, io.Discard, io.Discard, func() {})
	if err != nil {
		return err
	}
	completer := &completer{node: parser.Model.Node}
	kind, all := completer.complete(words)
	lines := []string{kind}
	for _, one := range all {
		lines = append(lines, completer.line(shell, one))
	}
	if _, err := fmt.Fprintln(env.stdout, strings.Join(lines, "\n")); err != nil {
		return withCode(exitIO, err)
	}
	return nil
}

// joinAssignments undoes that bash takes --flag=value for three words.
func joinAssignments(words []string) []string {
	var joined []string
	for _, word := range words {
		n := len(joined)
		switch {
		case n > 0 && word == "=" && strings.HasPrefix(joined[n-1], "--"):
			joined[n-1] += "="
		case n > 0 && strings.HasPrefix(joined[n-1], "--") && strings.HasSuffix(joined[n-1], "="):
			joined[n-1] += word
		default:
			joined = append(joined, word)
		}
	}
	return joined
}

// line is a candidate as a shell wants it.
func (c *completer) line(shell string, one candidate) string {
	help, _, _ := strings.Cut(one.help, ". ")
	help = strings.Join(strings.Fields(help), " ")
	switch {
	case shell == "bash": // it replaces what is behind the "="
		return strings.TrimPrefix(one.value, c.prefix)
	case shell == "zsh":
		return strings.ReplaceAll(one.value, ":", `\:`) + ":" + help
	}
	return one.value + "\t" + help
}
