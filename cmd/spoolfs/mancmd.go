package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/cpuguy83/go-md2man/v2/md2man"
)

// manCommand is "spoolfs man", which packages are built with.
type manCommand struct {
	Page string `arg:"" optional:"" help:"Page to print, such as spoolfs-mount.8; without one, their names."`
}

// Run is called by kong.
func (c *manCommand) Run(env *environment) error {
	pages, err := manPages()
	if err != nil {
		return err
	}
	if c.Page == "" {
		for _, name := range slices.Sorted(maps.Keys(pages)) {
			fmt.Fprintln(env.stdout, name)
		}
		return nil
	}
	page, known := pages[c.Page]
	if !known {
		return withCode(exitUsage, fmt.Errorf("there is no page %q: \"spoolfs man\" lists them", c.Page))
	}
	_, err = env.stdout.Write(md2man.Render([]byte(page)))
	return err
}

// manPages are the manual pages, as Markdown, by name and section. They are made
// of the command line as it is: of the same texts as its help.
func manPages() (map[string]string, error) {
	var c cli
	parser, err := newParser(&c, io.Discard, io.Discard, func() {})
	if err != nil {
		return nil, err
	}
	pages := map[string]string{"spoolfs.8": overviewPage(parser.Model), "spoolfs.yaml.5": configPage(parser.Model.Node), "mount.fuse.spoolfs.8": helperPage()}
	for _, command := range parser.Model.Children {
		if !command.Hidden {
			pages["spoolfs-"+command.Name+"."+section(command)] = commandPage(command)
		}
	}
	return pages, nil
}

// section is 8 for what administrators do, and 1 for the rest.
func section(command *kong.Node) string {
	if g := command.Group; g != nil && (g.Key == "run" || g.Key == "move") || command.Name == "fsck" || command.Name == "check" {
		return "8"
	}
	return "1"
}

func overviewPage(app *kong.Application) string {
	p := newManPage("spoolfs", "8", app.Help)
	p.head("SYNOPSIS")
	p.text("**spoolfs** *COMMAND* [*ARGUMENT* ...]")
	p.head("COMMANDS")
	for _, command := range app.Children {
		if !command.Hidden {
			p.item(fmt.Sprintf("**spoolfs-%s**(%s)", escaped(command.Name), section(command)), escaped(command.Help))
		}
	}
	p.exitStatus()
	return p.String()
}

func commandPage(command *kong.Node) string {
	p := newManPage("spoolfs-"+command.Name, section(command), command.Help)
	p.head("SYNOPSIS")
	for _, leaf := range leaves(command) {
		p.text(synopsis(leaf))
	}
	p.head("DESCRIPTION")
	p.detail(command.Detail)
	for _, leaf := range leaves(command) {
		if leaf != command {
			p.text("**" + escaped(leaf.Name) + "**: " + escaped(leaf.Help))
			p.detail(leaf.Detail)
		}
	}
	p.head("OPTIONS")
	seen := map[string]bool{}
	for _, leaf := range leaves(command) {
		for _, f := range leaf.Flags {
			if !f.Hidden && !seen[f.Name] {
				seen[f.Name] = true
				p.item(flagHead(f), flagText(f))
			}
		}
	}
	p.exitStatus()
	p.head("SEE ALSO")
	p.text("**spoolfs**(8), **spoolfs.yaml**(5)")
	return p.String()
}

// configPage describes the keys of the configuration, which are the flags of
// mount.
func configPage(app *kong.Node) string {
	p := newManPage("spoolfs.yaml", "5", "Configuration of spoolfs")
	p.head("DESCRIPTION")
	p.text("**/etc/spoolfs/spoolfs.yaml** has a key for each flag of **spoolfs-mount**(8). Files *conf.d/\\*.yaml* beside it come after it, in the order of their names. " +
		"A flag comes before a variable of the environment, and that before a file. Unknown keys are errors.")
	p.head("KEYS")
	p.item("**mountpoint**", "Directory to mount on.")
	flags := configKeys(app)
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		if key != mountpointKey && !flags[key].Hidden {
			p.item("**"+escaped(key)+"**", flagText(flags[key]))
		}
	}
	p.head("SEE ALSO")
	p.text("**spoolfs-mount**(8), **spoolfs-check**(8)")
	return p.String()
}

// leaves are the commands that can be run, below one or itself.
func leaves(n *kong.Node) []*kong.Node {
	if len(n.Children) == 0 {
		return []*kong.Node{n}
	}
	var all []*kong.Node
	for _, child := range n.Children {
		all = append(all, leaves(child)...)
	}
	return all
}

func synopsis(n *kong.Node) string {
	words := []string{"**" + escaped(n.FullPath()) + "**"}
	words = append(words, "[*OPTION* ...]")
	for _, arg := range n.Positional {
		words = append(words, escaped(arg.Summary()))
	}
	return strings.Join(words, " ")
}

func flagHead(f *kong.Flag) string {
	head := "**--" + escaped(f.Name) + "**"
	switch {
	case f.Tag.Negatable != "":
		head = "**--[no-]" + escaped(f.Name) + "**"
	case !f.IsBool():
		head += "=*" + escaped(f.FormatPlaceHolder()) + "*"
	}
	if f.Short != 0 {
		head = "**-" + string(f.Short) + "**, " + head
	}
	return head
}

func flagText(f *kong.Flag) string {
	text := escaped(f.Help)
	if len(f.Envs) > 0 {
		text += " [" + escaped(strings.Join(f.Envs, ", ")) + "]"
	}
	return text
}
