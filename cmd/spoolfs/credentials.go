package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"strings"

	"spoolfs/publisher/amqp"
)

// noPassword says how to give one.
func noPassword(u *url.URL) error {
	return fmt.Errorf("no password for user %q: give --password-file, --credentials, or amqp://user:password@host in SPOOLFS_BROKER", u.User.Username())
}

// passwordFrom reads the password of the URL's user from a file.
func passwordFrom(path string, u *url.URL) (amqp.Credentials, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return amqp.Credentials{}, err
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return amqp.Credentials{}, fmt.Errorf("password file %s is empty", path)
	}
	user := u.User.Username()
	if user == "" {
		user = "guest"
	}
	return amqp.Credentials{User: user, Password: password}, nil
}

// credentialsFrom looks a broker up in a credentials.conf.
func credentialsFrom(path string, u *url.URL) (amqp.Credentials, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return amqp.Credentials{}, err
	}
	c, err := lookUp(text, u)
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// lookUp finds the first line of a credentials.conf that is for a broker, by the
// rules of sr3: scheme, host, port, virtual host, and user and password if the
// broker's URL has them, must agree; a port that is not given is not the default
// one. Unlike there, percent-escapes are decoded in user and password alike. Its
// errors quote nothing of the file.
func lookUp(conf []byte, broker *url.URL) (amqp.Credentials, error) {
	unreadable := 0
	for line := range bytes.Lines(conf) {
		text := strings.TrimSpace(string(line))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		raw, details := text, ""
		if end := strings.IndexAny(text, " \t"); end > 0 {
			raw, details = text[:end], text[end:]
		}
		u, err := url.Parse(raw)
		if err != nil {
			unreadable++
			continue
		}
		if agree(u, broker) {
			return asCredentials(u, details)
		}
	}
	err := fmt.Errorf("no line for %s", maskURL(broker.String()))
	if unreadable > 0 {
		err = fmt.Errorf("%w; %d lines are not URLs: percent-encode special characters of the password", err, unreadable)
	}
	return amqp.Credentials{}, err
}

func agree(u, broker *url.URL) bool {
	if u.Scheme != broker.Scheme || !strings.EqualFold(u.Hostname(), broker.Hostname()) ||
		u.Port() != broker.Port() || vhostOf(u) != vhostOf(broker) {
		return false
	}
	return broker.User.Username() == "" || u.User.Username() == broker.User.Username()
}

// asCredentials reads a line that fits. Of its details only the way to log in
// is of use to AMQP.
func asCredentials(u *url.URL, details string) (amqp.Credentials, error) {
	c := amqp.Credentials{User: u.User.Username()}
	for _, detail := range strings.Split(details, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(detail), "=")
		if strings.TrimSpace(key) != "login_method" {
			continue
		}
		switch method := strings.ToUpper(strings.TrimSpace(value)); method {
		case "PLAIN", "AMQPLAIN": // the broker takes either
		case "EXTERNAL":
			c.External = true
		default:
			return c, fmt.Errorf("login_method %.20q is not supported", method)
		}
	}
	password, has := u.User.Password()
	if !has && !c.External {
		return c, fmt.Errorf("the line for user %q has no password", c.User)
	}
	c.Password = password
	return c, nil
}
