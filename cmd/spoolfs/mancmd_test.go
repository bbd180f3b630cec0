package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/cpuguy83/go-md2man/v2/md2man"
)

// TestManPages compares the manual pages with golden files, and has groff read
// them, which must not find fault with any.
func TestManPages(t *testing.T) {
	pages, err := manPages()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range pages {
		page := md2man.Render([]byte(text))
		golden(t, "man/"+name, string(page))
		groff := exec.Command("groff", "-man", "-Tutf8", "-ww", "-rLL=100n")
		groff.Stdin = bytes.NewReader(page)
		var said bytes.Buffer
		groff.Stderr = &said
		out, err := groff.Output()
		if err != nil || said.Len() > 0 {
			t.Errorf("groff of %s: %v\n%s", name, err, &said)
		}
		if base, _, _ := strings.Cut(name, "."); !strings.Contains(string(out), base) {
			t.Errorf("%s does not name %s", name, base)
		}
	}
	for name, words := range map[string]string{
		"spoolfs-mount.8": "SPOOLFS_MAX_BYTES", "spoolfs.yaml.5": "allow_exchange", "spoolfs-dead.1": "older-than", "spoolfs.8": "spoolfs-wait",
	} {
		if page := strings.ReplaceAll(pages[name], "\\", ""); !strings.Contains(page, words) {
			t.Errorf("%s does not have %s", name, words)
		}
	}
}
