package main

import (
	"net/url"
	"regexp"
	"strings"
)

var sr3Variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// substitute replaces the variables in words. It returns one that stands for nothing
// that is known, if there is any.
func (r *sr3Reader) substitute(words []string) (replaced []string, unknown string) {
	for _, word := range words {
		replaced = append(replaced, sr3Variable.ReplaceAllStringFunc(word, func(text string) string {
			name := text[2 : len(text)-1]
			value, ok := r.variable(name)
			if !ok {
				unknown = name
				return text
			}
			return value
		}))
	}
	return replaced, unknown
}

// variable is what a variable stands for: a special one, an option that is set, or one
// that is declared or of the environment, in this order.
func (r *sr3Reader) variable(name string) (value string, ok bool) {
	switch name {
	case "BROKER_USER":
		return userOfURL(r.options["broker"])
	case "POST_BROKER_USER":
		return userOfURL(r.options["post_broker"])
	case "PROGRAM":
		return r.program, true
	case "CONFIG":
		return r.config, true
	case "RAND8":
		return "", false // another one at each start
	}
	if value, ok = r.options[strings.ToLower(name)]; ok {
		return value, true
	}
	if value, ok = r.declared[name]; ok {
		return value, true
	}
	switch name {
	case "HOSTNAME":
		return r.host.name, r.host.name != ""
	case "HOST":
		short, _, _ := strings.Cut(r.host.name, ".")
		return short, short != ""
	}
	return r.host.env(name)
}

func userOfURL(raw string) (user string, ok bool) {
	u, err := url.Parse(raw)
	if err != nil || u.User == nil {
		return "", false
	}
	return u.User.Username(), true
}
