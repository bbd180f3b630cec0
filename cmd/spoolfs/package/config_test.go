package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestExample_Config: the example is a configuration, and so is each line of it that
// is commented out: the program reads them.
func TestExample_Config(t *testing.T) {
	example := read(t, "spoolfs.yaml")
	commented := regexp.MustCompile(`(?m)^# ([a-z_]+: .*)$`)
	if n := len(commented.FindAllString(example, -1)); n < 15 {
		t.Errorf("%d lines are commented out", n)
	}
	print := inForce(t, example)
	for _, want := range []string{"mountpoint: /run/spool", "store: /var/lib/spoolfs", "broker: ['amqps://feeder@broker.example.org/vhost']", "exchange: xs_feeder"} {
		if !strings.Contains(print, want) {
			t.Errorf("no %s in\n%s", want, print)
		}
	}
	for _, line := range commented.FindAllStringSubmatch(example, -1) {
		if print := inForce(t, example+line[1]+"\n"); !strings.Contains(print, strings.SplitAfter(line[1], ":")[0]) {
			t.Errorf("no %s in\n%s", line[1], print)
		}
	}
}

// inForce is the configuration as the program has read it.
func inForce(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "spoolfs.yaml")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(one(t, "first/out/package/bin/spoolfs"), "check", "--print", "--config", name).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\nof\n%s", err, out, text)
	}
	return string(out)
}

// TestUnits_Alike: the unit of several spools is that of one, but for where its
// files are.
func TestUnits_Alike(t *testing.T) {
	one, many := directives(read(t, "systemd/spoolfs.service")), directives(read(t, "systemd/spoolfs@.service"))
	want := strings.NewReplacer(
		"/etc/spoolfs/", "/etc/spoolfs/%i/", "StateDirectory=spoolfs\n", "StateDirectory=spoolfs-%i\n", "Spool of", "Spool %i of",
	).Replace(one)
	if many != want {
		t.Errorf("got\n%s\nwant\n%s", many, want)
	}
}

func directives(unit string) string {
	var b strings.Builder
	for line := range strings.Lines(unit) {
		if line != "\n" && !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestUnits_ShowTheMount: no directive is used for which systemd gives a service a
// mount namespace, in which the mount would be hidden from everybody else.
func TestUnits_ShowTheMount(t *testing.T) {
	hides := regexp.MustCompile(`(?m)^(Private(Tmp|Devices|Mounts|Users|IPC)|Protect[A-Za-z]*|ProcSubset|(ReadOnly|ReadWrite|Inaccessible|Exec|NoExec)Paths|Bind(ReadOnly)?Paths|DynamicUser|Root[A-Za-z]*|TemporaryFileSystem|Mount[A-Za-z]*|ExtensionImages|ExtensionDirectories|NetworkNamespacePath|LogNamespace)=`)
	for _, unit := range []string{"systemd/spoolfs.service", "systemd/spoolfs@.service"} {
		if found := hides.FindString(read(t, unit)); found != "" {
			t.Errorf("%s has %s", unit, found)
		}
	}
}
