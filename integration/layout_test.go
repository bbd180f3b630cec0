package integration

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// arrows are the imports between the packages of the project, tests apart. A
// new one is a change of the design: imports point at queue.
var arrows = map[string][]string{
	"spoolfs/queue":                {},
	"spoolfs/fs/ingest":            {"spoolfs/queue"},
	"spoolfs/fs/device":            {},
	"spoolfs/fs":                   {"spoolfs/fs/device", "spoolfs/fs/ingest", "spoolfs/fs/shm", "spoolfs/queue"},
	"spoolfs/fs/shm":               {},
	"spoolfs/fs/janitor":           {"spoolfs/fs/ingest", "spoolfs/queue"},
	"spoolfs/fs/keeper":            {"spoolfs/fs/device", "spoolfs/fs/shm"},
	"spoolfs/fs/keeper/keepertest": {}, // for tests
	"spoolfs/publisher":            {"spoolfs/queue"},
	"spoolfs/publisher/amqp":       {"spoolfs/publisher", "spoolfs/queue"},
	"spoolfs/cmd/spoolfs":          {"spoolfs/fs", "spoolfs/fs/device", "spoolfs/fs/ingest", "spoolfs/fs/janitor", "spoolfs/fs/keeper", "spoolfs/fs/shm", "spoolfs/publisher", "spoolfs/publisher/amqp", "spoolfs/queue"},
	"spoolfs/cmd/spoolfs/package":  {}, // no code, but tests
	"spoolfs/integration/rabbit":   {"spoolfs/integration/subprocess"},
	"spoolfs/integration/demo":     {"spoolfs/integration/rabbit", "spoolfs/integration/subprocess"},
	"spoolfs/integration/bench":    {"spoolfs/integration/rabbit", "spoolfs/integration/subprocess"},

	"spoolfs/integration/subprocess":  {},
	"spoolfs/integration/bench/scale": {}, // no code, but simulations in tests

	// Floors for a comparison: they use directly what they are about.
	"spoolfs/integration/bench/floor": {"spoolfs/fs/device"},
}

// owners are the only importers of each foreign dependency.
var owners = map[string][]string{
	"github.com/cockroachdb/pebble/v2": {"spoolfs/queue", "spoolfs/integration/bench/floor"},
	"github.com/hanwen/go-fuse/v2":     {"spoolfs/fs", "spoolfs/integration/bench/floor"},
	"github.com/rabbitmq/amqp091-go":   {"spoolfs/publisher/amqp", "spoolfs/integration/rabbit", "spoolfs/integration/bench/floor"},
	"gonum.org/v1/plot":                {"spoolfs/integration/bench"},
	"github.com/alecthomas/kong":       {"spoolfs/cmd/spoolfs"},
	"github.com/agnivade/levenshtein":  {"spoolfs/cmd/spoolfs", "spoolfs/fs/ingest"}, // what was meant by a misspelt name
	"github.com/cpuguy83/go-md2man/v2": {"spoolfs/cmd/spoolfs"},
	"github.com/prometheus":            {"spoolfs/cmd/spoolfs"},
	"github.com/schollz/progressbar":   {"spoolfs/cmd/spoolfs"},
	"go.yaml.in/yaml/v3":               {"spoolfs/cmd/spoolfs"},
	"golang.org/x/time":                {"spoolfs/publisher", "spoolfs/fs"}, // a limiter each, in no signature
}

// TestLayout compares the imports with the design.
func TestLayout(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "spoolfs/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range lines(string(out)) {
		words := strings.Fields(text)
		pkg, imports := words[0], words[1:]
		want, known := arrows[pkg]
		if !known {
			if pkg != "spoolfs/integration" {
				t.Errorf("package %s is not in the design", pkg)
			}
			continue
		}
		for _, imp := range imports {
			if strings.HasPrefix(imp, "spoolfs/") && !slices.Contains(want, imp) {
				t.Errorf("%s imports %s: the design has no such arrow", pkg, imp)
			}
			for foreign, allowed := range owners {
				if (imp == foreign || strings.HasPrefix(imp, foreign+"/")) && !slices.Contains(allowed, pkg) {
					t.Errorf("%s imports %s, which belongs to %v", pkg, imp, allowed)
				}
			}
		}
	}
}
