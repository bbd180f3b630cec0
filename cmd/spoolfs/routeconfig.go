package main

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"spoolfs/publisher"
)

// routesKey is the key under which the routes besides the default one stand.
const routesKey = "routes"

// placeFlags say where a route is.
type placeFlags struct {
	Directory string // in the root of the mount
	Was       string // the name that it had before
}

// routeConfig is a route of the configuration. What it does not say is as at the
// top level, with the exceptions in inherit.
type routeConfig struct {
	name       string
	placeFlags `embed:""`
	routeFlags `embed:""`
	origins    origins
}

// originInherited is the origin of a value that is that of the top level.
const originInherited = "inherited"

// routeKeys are the keys that a route may have.
func routeKeys() []string {
	var keys []string
	for _, f := range configFields(&routeConfig{}) {
		keys = append(keys, f.key)
	}
	slices.Sort(keys)
	return keys
}

// loginKeys are what belongs to the brokers of a route.
var loginKeys = []string{"vhost", "password_file", "credentials", "auth", "tls_ca", "tls_cert", "tls_key", "tls_name", "tls_skip_verify"}

// formatKeys are what belongs to the format of a route.
var formatKeys = []string{"routing_key", "header", "content_type", "provenance"}

// inherit returns a route with the settings of the top level. Those of who may log
// in belong to its brokers, and those of what a file is to its format: they are not
// passed on to a route that has others.
func (f *routeFlags) inherit(name string, given map[string]setting) (*routeConfig, error) {
	r := &routeConfig{name: name, placeFlags: placeFlags{Directory: name}, routeFlags: *f, origins: origins{}}
	var fresh routeFlags
	if err := kong.ApplyDefaults(&fresh, valueOptions()...); err != nil {
		return nil, err
	}
	own := []string{"directory", "was", "then", "else"}
	if _, other := given["broker"]; other {
		own = append(own, loginKeys...)
	}
	if s, other := given["format"]; other && s.node.Value != f.Format {
		own = append(own, formatKeys...)
	}
	for _, field := range configFields(r) {
		r.origins[field.key] = originInherited
		if !slices.Contains(own, field.key) {
			continue
		}
		r.origins[field.key] = originDefault
		if value := fieldOf(&fresh, field.key); value != nil {
			field.value.Set(*value)
		}
	}
	return r, nil
}

// route is the route of a name; nil if there is none.
func (c *configured) route(name string) *routeConfig {
	for _, r := range c.routes {
		if r.name == name {
			return r
		}
	}
	return nil
}

// fieldOf is the value of a key; nil if flags have none.
func fieldOf(flags any, key string) *reflect.Value {
	for _, f := range configFields(flags) {
		if f.key == key {
			return &f.value
		}
	}
	return nil
}

// makeRoutes makes the routes of the files.
func (c *configured) makeRoutes(top *routeFlags, flags map[string]*kong.Flag) error {
	c.routes = nil
	for _, name := range slices.Sorted(maps.Keys(c.files.routes)) {
		given := c.files.routes[name]
		r, err := top.inherit(name, given)
		if err != nil {
			return err
		}
		for key, s := range given {
			if err := s.decode(flags[key], fieldOf(r, key)); err != nil {
				return withCode(exitConfig, err)
			}
			r.origins[key] = s.where()
		}
		c.routes = append(c.routes, r)
	}
	return nil
}

// decode sets a value. A key without a flag is a text.
func (s setting) decode(flag *kong.Flag, to *reflect.Value) error {
	value, err := s.value()
	if err != nil {
		return err
	}
	to.SetZero()
	if flag == nil {
		to.SetString(s.node.Value)
		return nil
	}
	scan := kong.Scan().PushTyped(value, kong.FlagValueToken)
	if err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, *to); err != nil {
		return s.wrong("%v", err)
	}
	return nil
}

// addRoutes takes up the routes of a file: those of several files come together,
// and of several settings of a key of one the last one holds.
func (c *configSet) addRoutes(s setting) (err error) {
	if s.node.Kind == yaml.ScalarNode && s.node.Tag == "!!null" {
		return nil
	}
	if s.node.Kind != yaml.MappingNode {
		return s.wrong("want routes by their names, each with keys of its own")
	}
	routes, err := settingsIn(s.file, s.node)
	for _, route := range routes {
		if c.routes[route.key] == nil {
			c.routes[route.key] = map[string]setting{}
		}
		name := route.key
		route.key = routesKey + "." + name
		var settings []setting
		switch {
		case checkRouteName(name) != nil:
			err = errors.Join(err, fmt.Errorf("%s: %w", route.where(), checkRouteName(name)))
		case route.node.Kind == yaml.MappingNode:
			var e error
			settings, e = settingsIn(s.file, route.node)
			err = errors.Join(err, e)
		case route.node.Tag != "!!null":
			err = errors.Join(err, route.wrong("want keys of its own, such as \"exchange: x\""))
		}
		for _, one := range settings {
			c.routes[name][one.key] = one.in(name)
			c.ofRoutes = append(c.ofRoutes, one.in(name))
		}
	}
	return err
}

// in is the setting with the path of its key in a route.
func (s setting) in(route string) setting {
	s.short, s.key = s.key, routesKey+"."+route+"."+s.key
	return s
}

// checkOfRoute refuses keys that a route has not, and values that do not fit.
func (s setting) checkOfRoute(flags map[string]*kong.Flag) error {
	key, keys := s.short, routeKeys()
	switch {
	case !slices.Contains(keys, key) && (flags[key] != nil || key == mountpointKey):
		return s.wrong("it is for the whole spool: move it to the top level")
	case !slices.Contains(keys, key):
		if meant := suggest(key, keys); meant != "" {
			return fmt.Errorf("%s: unknown key %q of a route, did you mean %q?", s.where(), key, meant)
		}
		return fmt.Errorf("%s: unknown key %q of a route, which may have: %s", s.where(), key, strings.Join(keys, " "))
	case flags[key] != nil:
		return s.checkValue(flags[key])
	case s.node.Kind != yaml.ScalarNode || s.node.Value == "":
		return s.wrong("want a name")
	}
	return nil
}

// goodRouteName keeps names easy to type, to quote and to see.
var goodRouteName = regexp.MustCompile(`^[A-Za-z0-9_+=~-][A-Za-z0-9._+=~-]{0,63}$`)

func checkRouteName(name string) error {
	switch {
	case name == defaultRoute:
		return fmt.Errorf("route %q is the root of the mount, and its settings stand at the top level: move them there", name)
	case !goodRouteName.MatchString(name):
		return fmt.Errorf("route %q: a name has at most 64 letters, digits and characters of ._+=~-, and no dot at its beginning", name)
	}
	return nil
}

// check refuses what cannot work.
func (r *routeConfig) check() error {
	if err := r.checkDirectory(); err != nil {
		return r.placed(err)
	}
	if r.Was == defaultRoute || r.Was == r.name {
		return r.placed(badSetting("was", "want the name that the route had before, not %q", r.Was))
	}
	return r.placed(r.routeFlags.check())
}

func (r *routeConfig) checkDirectory() error {
	d := r.Directory
	number, isNumber := strings.CutPrefix(d, "+")
	if n, err := strconv.Atoi(number); isNumber && err == nil && n >= 0 {
		return badSetting("directory", "%q is one of the directories +0 to +255 that are always there: give another name", d)
	}
	if d == "" || len(d) > 255 || strings.HasPrefix(d, ".") || path.Base(d) != d || strings.ContainsRune(d, 0) {
		return badSetting("directory", "want the name of a directory at the root of the mount, without a slash and with no dot at its beginning, not %q", d)
	}
	return nil
}

// placed says of an error to which route it belongs, and where the value comes from.
func (r *routeConfig) placed(err error) error {
	if err == nil {
		return nil
	}
	var bad *settingError
	if errors.As(err, &bad) {
		if from := r.origins[bad.key]; strings.Contains(from, ":") {
			return withCode(exitConfig, fmt.Errorf("%s: %s.%s.%s: %s", from, routesKey, r.name, bad.key, bad.text))
		}
		return withCode(exitConfig, fmt.Errorf("route %s: %s: %s", r.name, bad.key, bad.text))
	}
	return withCode(exitConfig, fmt.Errorf("route %s: %w", r.name, err))
}

// checkRoutes checks the routes, each by itself and with the others.
func (c *configured) checkRoutes(top *routeFlags) error {
	var err error
	dirs, names := map[string]string{}, map[string]bool{}
	follows := map[string]publisher.Follows{defaultRoute: {Then: top.Then, Else: top.Else}}
	for _, r := range c.routes {
		err = errors.Join(err, r.check())
		names[r.name] = true
		follows[r.name] = publisher.Follows{Then: r.Then, Else: r.Else}
		if other, taken := dirs[r.Directory]; taken {
			err = errors.Join(err, r.placed(badSetting("directory", "%q is that of route %s already", r.Directory, other)))
		}
		dirs[r.Directory] = r.name
	}
	was := map[string]string{}
	for _, r := range c.routes {
		switch other, taken := was[r.Was]; {
		case r.Was == "":
		case names[r.Was]:
			err = errors.Join(err, r.placed(badSetting("was", "there still is a route %s", r.Was)))
		case taken:
			err = errors.Join(err, r.placed(badSetting("was", "route %s says so, too", other)))
		default:
			was[r.Was] = r.name
		}
	}
	if e := publisher.CheckFollows(follows); e != nil {
		err = errors.Join(err, withCode(exitConfig, e))
	}
	return err
}
