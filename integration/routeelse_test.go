package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"spoolfs/integration/rabbit"
)

// TestRoutes_Else: what a broker has refused as often as its route tries goes to the
// exchange for alerts, with the reason, and is no dead letter; what comes next goes on.
func TestRoutes_Else(t *testing.T) {
	node := brokerNode(t)
	alerts := newQueue(t, node)
	name := fmt.Sprintf("xs_full_%d", time.Now().UnixNano())
	full := rabbit.Queue{URL: node.URL(), Name: name, Exchange: name, Arguments: map[string]any{"x-max-length": 1, "x-overflow": "reject-publish"}}
	if err := full.Declare(limit(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	s := newConfigured(t, fmt.Sprintf("broker: %s\nexchange: none\nformat: amqp\nroutes:\n  work: {exchange: %s, retries: 0, else: alerts}\n  alerts: {exchange: %s}\n",
		node.URL(), full.Exchange, alerts.Exchange))
	s.place("work/fits", `{"routing_key": "k", "body": "fits"}`+"\n")
	s.until("confirmed what fits", func() bool { return s.routes()["work"].Publisher.ConfirmedTotal == 1 })
	s.place("work/refused", `{"routing_key": "k.refused", "body": "refused", "headers": {"own": "1"}}`+"\n")
	d := consume(t, alerts, 1)[0]
	reason, _ := d.Headers["x-spool-failed-reason"].(string)
	if string(d.Body) != "refused" || d.Key != "k.refused" || d.Headers["own"] != "1" || d.Headers["x-spool-failed-route"] != "work" ||
		!strings.HasPrefix(reason, "given-up") || !strings.HasSuffix(d.MessageID, "/alerts") {
		t.Errorf("the alert is %s with key %q, id %s and headers %v", d.Body, d.Key, d.MessageID, d.Headers)
	}
	if got := consume(t, full, 1)[0]; string(got.Body) != "fits" {
		t.Errorf("the full queue has %s", got.Body)
	}
	s.place("work/next", `{"routing_key": "k", "body": "next"}`+"\n")
	if got := consume(t, full, 1)[0]; string(got.Body) != "next" {
		t.Errorf("then came %s", got.Body)
	}
	s.until("nothing is left", func() bool {
		work := s.routes()["work"]
		return work.waiting()+work.Queue.Dead == 0
	})
}
