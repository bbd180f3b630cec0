package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// sr3Line is a line of a configuration of Sarracenia that sets something.
type sr3Line struct {
	file   string // base name
	number int
	text   string // as it stands there, without passwords
	key    string // the option, by its present name
	value  string // with its variables replaced

	used bool
	lost string // why it is not carried over
}

// where says where the line stands.
func (l *sr3Line) where() string { return fmt.Sprintf("%s:%d", l.file, l.number) }

// sr3Reader reads a configuration with what it includes.
type sr3Reader struct {
	host     sr3Host
	program  string            // the component, after its directory
	config   string            // its name
	declared map[string]string // declare env
	options  map[string]string // set so far, by their names in small letters
	lines    []*sr3Line
	open     []string // files, the innermost last
}

// readSR3 reads a configuration. Only what is named itself must be readable.
func readSR3(path string, host sr3Host) (*sr3Post, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	r := &sr3Reader{
		host: host, declared: map[string]string{}, options: map[string]string{},
		program: filepath.Base(filepath.Dir(abs)), config: strings.TrimSuffix(filepath.Base(abs), ".conf"),
	}
	if err := r.file(abs); err != nil {
		return nil, err
	}
	return &sr3Post{host: host, lines: r.lines}, nil
}

// maxIncludes is how deep files may include each other.
const maxIncludes = 16

func (r *sr3Reader) file(path string) error {
	if len(r.open) == maxIncludes {
		return errors.New("too many files include each other")
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r.open = append(r.open, path)
	defer func() { r.open = r.open[:len(r.open)-1] }()
	lines := bufio.NewScanner(f)
	for number := 1; lines.Scan(); number++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		r.line(&sr3Line{file: filepath.Base(path), number: number, text: withoutPasswords(strings.Join(words, " "))}, words)
	}
	return lines.Err()
}

// passwords finds those of URLs.
var passwords = regexp.MustCompile(`(://[^:/@\s]*):\S*@`)

// withoutPasswords is a line that may be shown.
func withoutPasswords(text string) string { return passwords.ReplaceAllString(text, "$1:…@") }

func (r *sr3Reader) line(l *sr3Line, words []string) {
	l.key = canonicalSR3(words[0])
	words, unknown := r.substitute(words)
	l.value = strings.Join(words[1:], " ")
	switch {
	case unknown != "":
		l.lost = "what ${" + unknown + "} stands for is not known here"
	case l.key == "include":
		l.lost = r.include(l.value)
		l.used = l.lost == ""
	case l.key == "declare":
		l.lost = r.declare(words[1:])
		l.used = l.lost == ""
	default:
		r.options[strings.ToLower(l.key)] = l.value
	}
	r.lines = append(r.lines, l)
}

// include reads another file, and says why if it cannot.
func (r *sr3Reader) include(name string) (problem string) {
	if name == "" || strings.HasPrefix(name, "http") {
		return "only files can be included here"
	}
	path := r.find(name)
	for _, open := range r.open {
		if open == path {
			return "it includes itself"
		}
	}
	err := r.file(path)
	var reading *os.PathError
	switch {
	case errors.As(err, &reading):
		return fmt.Sprint("it cannot be read: ", reading.Err)
	case err != nil:
		return err.Error()
	}
	return ""
}

// find looks for a file beside the one that includes it, and where Sarracenia does.
func (r *sr3Reader) find(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home, _ := r.host.env("HOME")
		name = filepath.Join(home, rest)
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	here := filepath.Dir(r.open[len(r.open)-1])
	for _, dir := range []string{here, filepath.Dir(here), r.host.configDir, filepath.Join(r.host.configDir, r.program), "/etc/sr3"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return filepath.Join(here, name)
}

// declare notes a variable. What else can be declared has no meaning here.
func (r *sr3Reader) declare(words []string) (problem string) {
	if len(words) < 2 || words[0] != "env" && words[0] != "envvar" && words[0] != "var" && words[0] != "value" {
		return "only variables can be declared here"
	}
	name, value, ok := strings.Cut(words[1], "=")
	if !ok && len(words) > 2 {
		value = words[2]
	}
	r.declared[name] = value
	return ""
}
