package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// routeNamesOf are the names of the routes of a configuration.
func routeNamesOf(c *mountCommand) (names []string) {
	for _, r := range c.routes {
		names = append(names, r.name)
	}
	return names
}

// TestRoutes_Inherit: what a route does not say is as at the top level, but for the
// login of other brokers, what belongs to another format, and what follows.
func TestRoutes_Inherit(t *testing.T) {
	dir := configDir(t, map[string]string{"main.yaml": `broker: amqp://u@h/
exchange: x
password_file: /etc/password
auth: plain
window: 7
ttl: 48h
format: raw
routing_key: a.${base}
header: [a=b]
provenance: true
then: plain
routes:
  plain:
  far: {broker: 'amqps://other/', window: 9, directory: remote}
  lines: {format: sarracenia, exchange: xs_lines, file_limit: 1MiB}
  same: {format: raw, allow_exchange: [a, b]}
`})
	c, err := loadFrom(t, dir, "--store", "DIR/store", "--ttl", "1h", "DIR/mnt")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := routeNamesOf(c), []string{"far", "lines", "plain", "same"}; !slices.Equal(got, want) {
		t.Fatalf("routes are %q", got)
	}
	for key, want := range map[string][4]any{ // far, lines, plain, same
		"directory":      {"remote", "lines", "plain", "same"},
		"exchange":       {"x", "xs_lines", "x", "x"},
		"window":         {9, 7, 7, 7},
		"ttl":            {time.Hour, time.Hour, time.Hour, time.Hour},
		"password_file":  {"", "/etc/password", "/etc/password", "/etc/password"},
		"broker":         {[]string{"amqps://other/"}, []string{"amqp://u@h/"}, []string{"amqp://u@h/"}, []string{"amqp://u@h/"}},
		"format":         {"raw", "sarracenia", "raw", "raw"},
		"routing_key":    {"a.${base}", "", "a.${base}", "a.${base}"},
		"header":         {[]string{"a=b"}, []string(nil), []string{"a=b"}, []string{"a=b"}},
		"provenance":     {true, false, true, true},
		"then":           {[]string(nil), []string(nil), []string(nil), []string(nil)},
		"allow_exchange": {[]string(nil), []string(nil), []string(nil), []string{"a", "b"}},
	} {
		for i, r := range c.routes {
			if got := fieldOf(r, key).Interface(); !reflect.DeepEqual(got, want[i]) {
				t.Errorf("%s of %s is %#v, want %#v", key, r.name, got, want[i])
			}
		}
	}
	far := c.route("far")
	for key, want := range map[string]string{"ttl": originInherited, "password_file": originDefault, "window": dir + "/main.yaml:14"} {
		if got := far.origins[key]; got != want {
			t.Errorf("%s of far comes from %q, want %q", key, got, want)
		}
	}
}

// TestRoutes_DropIns: routes of several files come together, and the last setting of
// a key holds.
func TestRoutes_DropIns(t *testing.T) {
	dir := configDir(t, map[string]string{
		"main.yaml":     "broker: amqp://h\nexchange: x\nroutes:\n  a: {exchange: a, window: 5}\n",
		"conf.d/1.yaml": "routes:\n  b: {exchange: b}\n",
		"conf.d/2.yaml": "routes:\n  a: {exchange: z}\n",
		"conf.d/3.yaml": "routes:\n",
	})
	c, err := loadFrom(t, dir, "--store", "DIR/store", "DIR/mnt")
	if err != nil {
		t.Fatal(err)
	}
	a, b := c.route("a"), c.route("b")
	if a.Exchange != "z" || a.Window != 5 || b.Exchange != "b" || b.Window != 1024 || len(c.routes) != 2 {
		t.Errorf("a has %q %d, b %q %d, of %q", a.Exchange, a.Window, b.Exchange, b.Window, routeNamesOf(c))
	}
	if want := dir + "/conf.d/2.yaml:2"; a.origins["exchange"] != want {
		t.Errorf("the exchange comes from %q, want %q", a.origins["exchange"], want)
	}
}

// TestRoutes_Printed: check --print shows routes in the form of a file that makes the
// same, passwords apart, and so do the lines of .status/config; the next worker has
// them, passwords too.
func TestRoutes_Printed(t *testing.T) {
	text := "broker: amqp://h\nexchange: x\nthen: b\nroutes:\n  a: {broker: 'amqp://u:s3cret@other/', then: [b], else: c, was: old}\n  b: {window: 3}\n  c:\n"
	dir := configDir(t, map[string]string{"main.yaml": text})
	c, err := loadFrom(t, dir, "--store", "DIR/store", "DIR/mnt")
	if err != nil {
		t.Fatal(err)
	}
	printed, err := effectiveConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	lines := string(configLines(c, c.origins, c.routes...))
	if strings.Contains(string(printed)+lines, "s3cret") {
		t.Errorf("the password is in\n%s%s", printed, lines)
	}
	for _, line := range []string{"routes.a.then b\n", "routes.a.broker amqp://u@other/\n", "routes.b.window 3\n", "routes.b.window.from " + dir + "/main.yaml:6\n", "routes.c.directory c\n", "then b\n"} {
		if !strings.Contains(lines, "\n"+line) {
			t.Errorf("no %q in\n%s", line, lines)
		}
	}
	again := configDir(t, map[string]string{"main.yaml": string(printed)})
	d, err := loadFrom(t, again)
	if err != nil {
		t.Fatalf("%v in\n%s", err, printed)
	}
	d.route("a").Broker = c.route("a").Broker // without its password
	checkSameRoutes(t, d, c)
	inForce, err := c.encode()
	if err != nil {
		t.Fatal(err)
	}
	next, err := decodeMount(inForce)
	if err != nil {
		t.Fatal(err)
	}
	checkSameRoutes(t, next, c)
	if got, want := next.route("b").origins, c.route("b").origins; !reflect.DeepEqual(got, want) {
		t.Errorf("origins are %v, were %v", got, want)
	}
}

func checkSameRoutes(t *testing.T, got, want *mountCommand) {
	t.Helper()
	if len(got.routes) != len(want.routes) {
		t.Fatalf("%q are the routes, want %q", routeNamesOf(got), routeNamesOf(want))
	}
	for i, r := range want.routes {
		for _, f := range configFields(r) {
			value := fieldOf(got.routes[i], f.key).Interface()
			was := reflect.ValueOf(value)
			if !reflect.DeepEqual(value, f.value.Interface()) && !(was.Kind() == reflect.Slice && was.Len() == 0 && f.value.Len() == 0) {
				t.Errorf("%s of %s is %#v, want %#v", f.key, r.name, value, f.value)
			}
		}
	}
}

// TestRoutes_KeepFixed: what needs a restart stays as it was in each route; one that is
// new, or has another name, is taken as it is.
func TestRoutes_KeepFixed(t *testing.T) {
	load := func(routes string) *mountCommand {
		dir := configDir(t, map[string]string{"main.yaml": "broker: amqp://h\nexchange: x\nstore: /tmp\nroutes:\n" + routes})
		c, err := loadFrom(t, dir, "DIR/mnt")
		if err != nil {
			t.Fatal(err)
		}
		c.Mountpoint = "/mnt"
		return c
	}
	now := load("  a: {format: raw, routing_key: k}\n  b: {format: amqp}\n")
	next := load("  a: {format: amqp, window: 3}\n  b2: {was: b, format: raw, routing_key: l}\n  c: {format: amqp}\n")
	if got, want := keepFixed(now, next), []string{"routes.a.format", "routes.a.routing_key", "routes.b2.format", "routes.b2.routing_key"}; !slices.Equal(got, want) {
		t.Errorf("fixed are %q, want %q", got, want)
	}
	a, b, c := next.route("a"), next.route("b2"), next.route("c")
	if a.Format != "raw" || a.RoutingKey != "k" || a.Window != 3 || b.Format != "amqp" || b.RoutingKey != "" || c.Format != "amqp" {
		t.Errorf("a is %s %s %d, b2 %s %s, c %s", a.Format, a.RoutingKey, a.Window, b.Format, b.RoutingKey, c.Format)
	}
}
