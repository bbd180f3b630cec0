package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// setting is one line of a configuration file: a key and its value.
type setting struct {
	key   string
	file  string
	line  int
	node  *yaml.Node // the value
	short string     // of one of a route: the key without its path
}

// where is the place of the setting, as editors understand it.
func (s setting) where() string { return fmt.Sprintf("%s:%d", s.file, s.line) }

// wrong makes an error about the setting.
func (s setting) wrong(format string, args ...any) error {
	return fmt.Errorf("%s: %s: %s", s.where(), s.key, fmt.Sprintf(format, args...))
}

// readConfigFile reads a file of YAML. Its errors name file and line, and quote
// no value, which may hold a password.
func readConfigFile(path string) ([]setting, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	err = decoder.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil // nothing but comments
	}
	if err != nil {
		return nil, yamlError(path, err)
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: want one document, without a further \"---\"", path)
	}
	root := doc.Content[0]
	switch {
	case root.Kind == yaml.ScalarNode && root.Tag == "!!null":
		return nil, nil
	case root.Kind != yaml.MappingNode:
		return nil, fmt.Errorf("%s:%d: want lines of \"key: value\"", path, root.Line)
	}
	return settingsIn(path, root)
}

func settingsIn(path string, root *yaml.Node) (settings []setting, err error) {
	lines := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		s := setting{key: key.Value, file: path, line: key.Line, node: value}
		switch first := lines[s.key]; {
		case key.Kind != yaml.ScalarNode:
			err = errors.Join(err, fmt.Errorf("%s: want a key, such as \"store\"", s.where()))
		case first > 0:
			err = errors.Join(err, s.wrong("stands in line %d already", first))
		}
		lines[s.key] = s.line
		settings = append(settings, s)
	}
	return settings, err
}

// yamlError says it in the way of compilers. The library's words are about the
// form, and never hold a value, except the name of an anchor.
func yamlError(path string, err error) error {
	line, what := "1", strings.TrimPrefix(err.Error(), "yaml: ") // it leaves out the first line's number
	if rest, ok := strings.CutPrefix(what, "line "); ok {
		line, what, _ = strings.Cut(rest, ": ")
	}
	switch {
	case strings.HasPrefix(what, "unknown anchor"):
		return fmt.Errorf("%s: no YAML: a value that begins with * must be quoted", path)
	case strings.HasPrefix(what, "mapping values"):
		what = `a value with a colon in it must be quoted, such as "stdout:"`
	}
	return fmt.Errorf("%s:%s: no YAML: %s", path, line, what)
}
