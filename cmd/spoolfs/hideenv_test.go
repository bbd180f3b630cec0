package main

import "testing"

// TestHideIn: passwords in our variables are overwritten, nothing else is.
func TestHideIn(t *testing.T) {
	block := "HOME=/root\x00SPOOLFS_BROKER=amqp://u:s3cret@h/ amqps://v:s3/c@ret@h2/\x00OTHER=amqp://u:kept@h\x00SPOOLFS_STORE=/a:b\x00"
	want := "HOME=/root\x00SPOOLFS_BROKER=amqp://u:xxxxxx@h/ amqps://v:xxxxxxxx@h2/\x00OTHER=amqp://u:kept@h\x00SPOOLFS_STORE=/a:b\x00"
	got := []byte(block)
	if !hideIn(got) || string(got) != want {
		t.Errorf("got %q", got)
	}
	if none := []byte("SPOOLFS_STORE=/x\x00"); hideIn(none) {
		t.Errorf("found a password in %q", none)
	}
}

// TestHidingPasswords: errors quote no password, wherever it was put.
func TestHidingPasswords(t *testing.T) {
	for text, want := range map[string]string{
		`unexpected argument amqp://u:s3cret@h/ (--help)`: `unexpected argument amqp://u:xxx@h/ (--help)`,
		`not "amqp://u:s3@c/ret@h", and amqps://h:5671/`:  `not "amqp://u:xxx@h", and amqps://h:5671/`,
		"a: b@c": "a: b@c",
	} {
		if got := hidingPasswords(text); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
