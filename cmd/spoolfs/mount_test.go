package main

import (
	"strings"
	"testing"
)

// TestMaskURL: no part of a password is shown, however the URL is written (G12).
func TestMaskURL(t *testing.T) {
	for raw, want := range map[string]string{
		"amqp://user:secret@host:5672/vhost":    "amqp://user@host:5672/vhost",
		"amqps://host":                          "amqps://host",
		"amqp://user:secret@host/?key=secret":   "amqp://user@host/",
		"amqp://user:sec%ret@host/":             "(not a URL)",
		"stdout:":                               "stdout:",
		"amqp:user:secret@host/":                "amqp:",
		"amqp://user:%73ecret@host/v#secret@x/": "amqp://user@host/v",
	} {
		got := maskURL(raw)
		if got != want {
			t.Errorf("maskURL(%q) = %q, want %q", raw, got, want)
		}
		if strings.Contains(got, "secret") {
			t.Errorf("maskURL(%q) = %q shows the password", raw, got)
		}
	}
}

// TestWithin: a store in its own mount is refused, links or not.
func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		path, dir string
		want      bool
	}{
		{"/a/b", "/a", true},
		{"/a", "/a", true},
		{"/a/b/../../c", "/a", false},
		{"/ab", "/a", false},
		{"/", "/a", false},
		{"/proc/self/root/tmp/x", "/tmp", true},
	} {
		if got := within(tt.path, tt.dir); got != tt.want {
			t.Errorf("within(%q, %q) = %t, want %t", tt.path, tt.dir, got, tt.want)
		}
	}
}

// TestKeyValueLines: the lines have the keys of status.json, sorted.
func TestKeyValueLines(t *testing.T) {
	got := string(keyValueLines(queueStatus{messageCounts: messageCounts{Ready: 3, Bytes: 1 << 40}}))
	if !strings.HasPrefix(got, "bytes 1099511627776\n") || !strings.Contains(got, "\nready 3\n") {
		t.Errorf("the lines are\n%s", got)
	}
}
