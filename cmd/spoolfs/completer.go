package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completer finds what may stand at the end of a command line, by the model of
// the command line and by what is mounted. It asks no daemon.
type completer struct {
	node       *kong.Node
	positional int        // words that were no commands
	pending    *kong.Flag // that waits for its value

	// prefix is what of the last word stands before a value, such as --flag=.
	prefix string
}

// candidate is what may stand there.
type candidate struct{ value, help string }

// The kinds of candidates: a list, or names of files or directories, which the
// shell knows better.
const (
	completeWords = "words"
	completeFiles = "files"
	completeDirs  = "dirs"
)

// complete returns the kind of what may stand for the last word, and, for words,
// the list.
func (c *completer) complete(words []string) (string, []candidate) {
	if len(words) == 0 {
		words = []string{""}
	}
	for _, word := range words[:len(words)-1] {
		c.pass(word)
	}
	last := words[len(words)-1]
	kind, all := c.candidates(last)
	return kind, slices.DeleteFunc(all, func(o candidate) bool { return !strings.HasPrefix(o.value, last) })
}

// pass goes over a word that is complete.
func (c *completer) pass(word string) {
	switch child := c.child(word); {
	case c.pending != nil:
		c.pending = nil
	case strings.HasPrefix(word, "-"):
		name, _, hasValue := strings.Cut(word, "=")
		if f := c.flag(name); f != nil && !f.IsBool() && !hasValue {
			c.pending = f
		}
	case child != nil && c.positional == 0:
		c.node = child
	default:
		c.positional++
	}
}

func (c *completer) child(word string) *kong.Node {
	for _, n := range c.node.Children {
		if n.Type == kong.CommandNode && !n.Hidden && (n.Name == word || slices.Contains(n.Aliases, word)) {
			return n
		}
	}
	return nil
}

func (c *completer) flag(name string) *kong.Flag {
	for _, group := range c.node.AllFlags(true) {
		for _, f := range group {
			if "--"+f.Name == name || f.Short != 0 && "-"+string(f.Short) == name {
				return f
			}
		}
	}
	return nil
}

func (c *completer) candidates(last string) (string, []candidate) {
	name, _, hasValue := strings.Cut(last, "=")
	switch {
	case c.pending != nil:
		return values(c.pending.Value, "")
	case strings.HasPrefix(last, "-") && hasValue:
		if f := c.flag(name); f != nil {
			c.prefix = name + "="
			return values(f.Value, c.prefix)
		}
		return completeWords, nil
	case strings.HasPrefix(last, "-"):
		return completeWords, c.flags()
	case len(c.node.Children) > 0:
		return completeWords, c.commands()
	case len(c.node.Positional) == 0:
		return completeWords, nil
	case c.node.Name == "mount":
		return completeDirs, nil // where no spool is yet
	}
	return values(c.node.Positional[min(c.positional, len(c.node.Positional)-1)], "")
}

func (c *completer) commands() []candidate {
	var all []candidate
	for _, n := range c.node.Children {
		if !n.Hidden {
			all = append(all, candidate{n.Name, n.Help})
		}
	}
	return all
}

func (c *completer) flags() []candidate {
	var all []candidate
	for _, group := range c.node.AllFlags(true) {
		for _, f := range group {
			value := "--" + f.Name
			if !f.IsBool() {
				value += "="
			}
			all = append(all, candidate{value, f.Help})
		}
	}
	return all
}

// values are those of a flag or an argument, behind a prefix.
func values(v *kong.Value, prefix string) (string, []candidate) {
	var all []candidate
	switch {
	case v.Enum != "":
		for _, value := range v.EnumSlice() {
			all = append(all, candidate{value: prefix + value})
		}
	case v.Name == "mountpoint" || v.Name == "id":
		mounts, _ := readMounts() // or none
		for _, m := range mounts {
			all = append(all, candidate{prefix + m.Mountpoint, "a spool"})
		}
		if v.Name == "mountpoint" && len(all) == 0 {
			return completeDirs, nil
		}
	case v.Name == "store" || v.Name == "directory" || v.Flag != nil && v.Flag.PlaceHolder == "DIR":
		return completeDirs, nil
	case v.Name == "file" || v.Flag != nil && v.Flag.PlaceHolder == "FILE":
		return completeFiles, nil
	}
	return completeWords, all
}
