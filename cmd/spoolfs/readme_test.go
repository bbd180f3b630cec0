package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// readmeExample is the configuration in the README.
func readmeExample(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```yaml\n# /etc/spoolfs/spoolfs.yaml\n")
	example, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatal("there is no example in the README")
	}
	return example
}

// TestReadme_Config: the example is a configuration, and each line of it that is
// commented out is a setting, too.
func TestReadme_Config(t *testing.T) {
	dir := configDir(t, nil)
	example := strings.Replace(readmeExample(t), "/run/spool", dir+"/mnt", 1)
	files := map[string]string{"main.yaml": example}
	for i, line := range regexp.MustCompile(`(?m)^# ([a-z_]+: .*)$`).FindAllStringSubmatch(example, -1) {
		files["conf.d/"+string(rune('a'+i))+".yaml"] = line[1] + "\n"
	}
	if len(files) < 10 {
		t.Fatalf("the example is\n%s", example)
	}
	for name, text := range files {
		set := configDir(t, map[string]string{"main.yaml": "mountpoint: " + dir + "/mnt\nstore: /s\nbroker: amqp://h\nexchange: x\nformat: " + formatOf(text) + "\n", "conf.d/x.yaml": text})
		if c, err := loadFrom(t, set); err != nil && !strings.Contains(err.Error(), "belong together") && !strings.Contains(err.Error(), "no group") {
			t.Errorf("%s: %v", text, err)
		} else if name == "main.yaml" && (c.Exchange != "xs_feeder" || c.MaxBytes != 10<<30) {
			t.Errorf("got %+v", c)
		}
	}
}

// formatOf is the format for which a setting is.
func formatOf(text string) string {
	if regexp.MustCompile(`^(routing_key|header|content_type|provenance):`).MatchString(text) {
		return "raw\nrouting_key: k"
	}
	return "sarracenia"
}
