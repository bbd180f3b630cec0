package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestRoutes_Raw: in a route, also below its standing directories, a file of 50 MiB is one
// message, and one whose writer is killed is set aside and not published.
func TestRoutes_Raw(t *testing.T) {
	node := brokerNode(t)
	q := newQueue(t, node)
	s := newConfigured(t, fmt.Sprintf("broker: %s\nexchange: none\nroutes:\n  bulk: {format: raw, exchange: %s, routing_key: 'bulk.${dir}.${name}', message_limit: 64MiB}\n", node.URL(), q.Exchange))
	s.sh(`mkdir -p $M/bulk/+9/in; head -c 52428800 /dev/zero > $M/bulk/+9/in/big.bin`)
	if d := consume(t, q, 1)[0]; len(d.Body) != 50<<20 || d.Key != "bulk.in.big.bin" || d.Exchange != q.Exchange {
		t.Errorf("a body of %d bytes with key %q", len(d.Body), d.Key)
	}
	s.sh(`for d in $M/bulk $M/bulk/+3; do bash -c "exec > $d/torn; printf part; sync $d/torn; kill -9 \$\$" || :; done`)
	s.until("two files are set aside", func() bool { return s.routes()["bulk"].Queue.Partial == 2 })
	found, err := filepath.Glob(filepath.Join(s.dir, ".status", "partial", "*torn*"))
	if err != nil || len(found) != 2 {
		t.Errorf("set aside are %q, %v", found, err)
	}
	for _, file := range found {
		if text, err := os.ReadFile(file); err != nil || string(text) != "part" {
			t.Errorf("%s holds %q, %v", file, text, err)
		}
	}
	s.sh(`printf whole > $M/bulk/+3/torn`)
	if d := consume(t, q, 1)[0]; string(d.Body) != "whole" || d.Key != "bulk.torn" {
		t.Errorf("got %q with key %q", d.Body, d.Key)
	}
}
