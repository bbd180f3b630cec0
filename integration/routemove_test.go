package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRoutes_Move: export, import and drain know all routes of a store. What comes to a
// spool whose configuration has no such route is kept and shown, and is published
// nowhere else.
func TestRoutes_Move(t *testing.T) {
	s := newConfigured(t, "broker: '"+deadBroker+"'\nexchange: x\nformat: raw\nrouting_key: k\nroutes:\n  a:\n  b:\n")
	for name, files := range map[string]int{"a/": 2, "b/": 3, "": 1} {
		for i := range files {
			s.place(fmt.Sprintf("%sf%d", name, i), "text")
		}
	}
	s.until("done with ingesting", func() bool {
		r := s.routes()
		return r["a"].Queue.Ready == 2 && r["b"].Queue.Ready == 3 && r["default"].Queue.Ready == 1
	})
	s.kill()
	bundle := filepath.Join(t.TempDir(), "bundle")
	if code, said := runToFile(t, bundle, "export", "--store", s.store); code != 0 {
		t.Fatalf("export: %d, %s", code, said)
	}
	to := newConfigured(t, "broker: 'stdout:'\nexchange: y\nroutes:\n  a:\n")
	succeed(t, "import", bundle, to.dir)
	arrived := func(a, b, top uint64) bool {
		r := to.routes()
		return r["a"].Publisher.ConfirmedTotal == a && r["b"].Queue.Ready == b && r["default"].Publisher.ConfirmedTotal == top
	}
	to.until("done with the bundle", func() bool { return arrived(2, 3, 1) })
	to.wantRoutes(map[string]string{"default": "active", "a": "active", "b": "removed"})
	live := bundle + ".live"
	if code, said := runToFile(t, live, "export", to.dir); code != 0 {
		t.Fatalf("export of a running spool: %d, %s", code, said)
	}
	if text, err := os.ReadFile(live); err != nil || strings.Count(string(text), `"route":"b"`) != 3 {
		t.Errorf("exported are\n%s%v", text, err)
	}
	code, said := runToFile(t, bundle+".sent", "drain", "--config", "/dev/null", "--store", s.store, "--route", "b", "--broker", "stdout:", "--exchange", "z")
	if sent, err := os.ReadFile(bundle + ".sent"); code != 0 || err != nil || strings.Count(string(sent), `"exchange":"z"`) != 3 {
		t.Errorf("drain of a route: %d, %s, %s, %v", code, sent, said, err)
	}
	if code, said := runToFile(t, bundle+".none", "drain", "--config", "/dev/null", "--store", s.store, "--route", "b", "--broker", "stdout:", "--exchange", "z"); code != 64 || !strings.Contains(said, "a (2)") {
		t.Errorf("drain of a route that is empty: %d, %s", code, said)
	}
	succeed(t, "drain", "--config", "/dev/null", "--store", s.store, "--to", to.dir)
	to.until("done with the store", func() bool { return arrived(4, 3, 2) })
}
