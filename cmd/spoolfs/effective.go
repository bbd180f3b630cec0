package main

import (
	"bytes"
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
)

// effectiveConfig is the configuration as a file that would make it, passwords
// apart, with the origin of each value as a comment.
func effectiveConfig(c *mountCommand) ([]byte, error) {
	root := effectiveNode(c, c.origins)
	if len(c.routes) > 0 {
		routes := &yaml.Node{Kind: yaml.MappingNode}
		for _, r := range c.routes {
			routes.Content = append(routes.Content, scalar(r.name, true), effectiveNode(r, r.origins))
		}
		root.Content = append(root.Content, scalar(routesKey, false), routes)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# What is in force, each value with where it comes from; passwords are not shown.\n")
	for _, file := range c.files.files {
		fmt.Fprintf(&b, "# Read: %s\n", file)
	}
	encoder := yaml.NewEncoder(&b)
	err := encoder.Encode(root)
	return b.Bytes(), err
}

// effectiveNode are the settings of flags.
func effectiveNode(flags any, from origins) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range configFields(flags) {
		if f.field.Tag.Get("config") == "-" || f.key == "was" && f.value.IsZero() {
			continue
		}
		value := f.yaml()
		value.LineComment = from[f.key]
		node.Content = append(node.Content, scalar(f.key, false), value)
	}
	return node
}

// yaml is the value as a file would have it.
func (f configField) yaml() *yaml.Node {
	texts := f.texts()
	if f.value.Kind() != reflect.Slice {
		return scalar(texts[0], f.value.Kind() == reflect.String)
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, text := range texts {
		list.Content = append(list.Content, scalar(text, true))
	}
	return list
}

func scalar(text string, isText bool) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	if isText {
		n.Tag = "!!str" // quoted if it would be read as something else
	}
	return n
}
