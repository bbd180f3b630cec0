package main

import (
	"strings"
	"testing"
	"time"

	"spoolfs/publisher"
	"spoolfs/queue"
)

// TestPolicy_Options: what a configuration says reaches queue and publisher, and a route
// has what the top level says.
func TestPolicy_Options(t *testing.T) {
	dir := configDir(t, map[string]string{"main.yaml": `broker: amqp://h
exchange: x
retries: 0
backoff_max: 2s
route_share: 0.25
routes:
  same:
  fresh: {order: newest-first, on_full: drop-oldest, route_messages: 10, route_bytes: 1MiB, retries: 3, workers: 4, backoff_min: 1s, coalesce: true}
`})
	c, err := loadFrom(t, dir, "--store", "DIR/store", "DIR/mnt")
	if err != nil {
		t.Fatal(err)
	}
	fresh, same := &c.routes[0].routeFlags, &c.routes[1].routeFlags
	base := queue.RouteOptions{Order: queue.FIFO, OnFull: queue.Reject, Share: 0.25}
	for name, tt := range map[string]struct {
		flags    *routeFlags
		queue    queue.RouteOptions
		attempts int
		workers  int
		from, to time.Duration
	}{
		"top":  {&c.routeFlags, base, 1, 1, 250 * time.Millisecond, 2 * time.Second},
		"same": {same, base, 1, 1, 250 * time.Millisecond, 2 * time.Second},
		"fresh": {fresh, queue.RouteOptions{Order: queue.NewestFirst, OnFull: queue.DropOldest, Share: 0.25, Bytes: 1 << 20, Messages: 10, Coalesce: true},
			4, 4, time.Second, 2 * time.Second},
	} {
		var o publisher.Options
		tt.flags.publisherOptions(&o)
		if got := tt.flags.queueOptions(); got != tt.queue {
			t.Errorf("%s: queue options are %+v, want %+v", name, got, tt.queue)
		}
		if o.MaxAttempts != tt.attempts || o.Workers != tt.workers || o.RetryMin != tt.from || o.RetryMax != tt.to {
			t.Errorf("%s: publisher options are %+v", name, o)
		}
	}
}

// TestRoutes_LongNames: what a publisher does not take is no good configuration: a reload
// would have changed other routes by then.
func TestRoutes_LongNames(t *testing.T) {
	for what, route := range map[string]string{
		"exchange":     "exchange: " + strings.Repeat("x", 256),
		"topic":        "topic: " + strings.Repeat("x", 256),
		"topic_prefix": "topic_prefix: " + strings.Repeat("x", 256),
	} {
		for want, text := range map[string]string{
			"":     strings.TrimSuffix(route, "x"),
			"want": route,
		} {
			dir := configDir(t, map[string]string{"main.yaml": "broker: amqp://h\nexchange: x\nroutes:\n  a: {" + text + "}\n"})
			c, err := loadFrom(t, dir, "--store", "DIR/store", "DIR/mnt")
			if err == nil {
				err = c.check()
			}
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), "routes.a."+what+": want at most 255 bytes")) {
				t.Errorf("%s of %d bytes: %v", what, len(text)-len(what)-2, err)
			}
		}
	}
	split := brokerFlags{Exchange: strings.Repeat("x", 254), ExchangeSplit: 4}
	if err := split.checkNames(); err == nil {
		t.Error("two digits more are too long, and are taken")
	}
}

// TestPolicy_Default: nothing said means what there was before.
func TestPolicy_Default(t *testing.T) {
	dir := configDir(t, map[string]string{"main.yaml": "broker: amqp://h\nexchange: x\n"})
	c, err := loadFrom(t, dir, "--store", "DIR/store", "DIR/mnt")
	if err != nil {
		t.Fatal(err)
	}
	var o publisher.Options
	c.publisherOptions(&o)
	if o.MaxAttempts != 0 || o.Workers != 1 {
		t.Errorf("publisher options are %+v", o)
	}
}

func TestPolicy_Refused(t *testing.T) {
	for text, want := range map[string]string{
		"retries: -2":                      "retries: want a number",
		"workers: 0":                       "workers: want 1 to 64",
		"workers: 65":                      "workers: want 1 to 64",
		"route_share: 1.5":                 "route_share: share 1.5",
		"route_share: -1":                  "route_share: share -1",
		"order: lifo":                      "order",
		"on_full: drop":                    "on_full",
		"backoff_min: 0":                   "backoff_min: want more than 0",
		"backoff_min: 5s\nbackoff_max: 1s": "backoff_max: want no less than",
	} {
		dir := configDir(t, map[string]string{"main.yaml": "broker: amqp://h\nexchange: x\n" + text + "\n"})
		if _, err := loadFrom(t, dir, "--store", "DIR/store", "DIR/mnt"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
