package main

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// sr3Writer writes routes as a configuration.
type sr3Writer struct {
	strings.Builder
	lost   int
	routes int
}

// route writes a route; that without a name is the default one.
func (w *sr3Writer) route(name string, p *sr3Post) {
	indent := ""
	if name == "" {
		w.WriteString("# Made by spoolfs import-sr3. Say where it is to be mounted, and where the store is:\n# mountpoint: /run/spool\n# store: /var/lib/spoolfs\n\n")
	} else {
		if w.routes == 0 {
			w.WriteString("\nroutes:\n")
		}
		w.routes++
		indent = "    "
		fmt.Fprintf(w, "  %s:\n", yamlText(name))
	}
	for _, missing := range p.missing {
		w.lost++
		fmt.Fprintf(w, "%s# %s\n", indent, missing)
	}
	for _, s := range p.settings {
		value := s.value
		if !s.plain {
			value = yamlText(value)
		}
		fmt.Fprintf(w, "%s%s: %s  # %s\n", indent, s.key, value, commentText(s.comment))
	}
	w.lostLines(indent, p)
}

// lostLines writes what is not carried over.
func (w *sr3Writer) lostLines(indent string, p *sr3Post) {
	title := fmt.Sprintf("\n%s# Not carried over:\n", indent)
	for _, l := range p.lines {
		if l.lost == "" {
			continue
		}
		w.WriteString(title)
		title = ""
		w.lost++
		fmt.Fprintf(w, "%s# %s: %s -- %s\n", indent, commentText(l.where()), commentText(l.text), commentText(l.lost))
	}
}

// yamlText is a text as a value on one line.
func yamlText(text string) string {
	out, err := yaml.Marshal(text)
	line := strings.TrimSuffix(string(out), "\n")
	if err != nil || strings.Contains(line, "\n") {
		return strconv.QuoteToASCII(text) // which YAML reads as well
	}
	return line
}

// commentText is text that cannot end a comment.
func commentText(text string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
