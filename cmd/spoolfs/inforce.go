package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/alecthomas/kong"
)

// inForce is the configuration that is in force, as a worker leaves it to the
// next one. That does not read the files again: they may be wrong by then, and
// what needs a restart, such as another store, must not change under a mount with
// open files. It may hold passwords, so it goes through the keeper's memory only.
type inForce struct {
	Values  map[string]json.RawMessage `json:"values"`
	Origins origins                    `json:"origins"`
	Files   []string                   `json:"files"`

	// Routes are the routes by name, with all their values.
	Routes map[string]inForce `json:"routes,omitempty"`
}

// encode writes the configuration down.
func (c *mountCommand) encode() (json.RawMessage, error) {
	now := inForce{Origins: c.origins, Files: c.files.files, Routes: map[string]inForce{}}
	var err error
	if now.Values, err = encodeValues(c); err != nil {
		return nil, err
	}
	for _, r := range c.routes {
		values, err := encodeValues(r)
		if err != nil {
			return nil, err
		}
		now.Routes[r.name] = inForce{Values: values, Origins: r.origins}
	}
	return json.Marshal(now)
}

func encodeValues(flags any) (map[string]json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	for _, f := range configFields(flags) {
		text, err := json.Marshal(f.value.Interface())
		if err != nil {
			return nil, fmt.Errorf("setting %s: %w", f.key, err)
		}
		values[f.key] = text
	}
	return values, nil
}

// decodeMount reads what encode has written. Settings that it does not know, since
// it was another version, have their defaults.
func decodeMount(text json.RawMessage) (*mountCommand, error) {
	c := &mountCommand{}
	if err := kong.ApplyDefaults(c, valueOptions()...); err != nil {
		return nil, err
	}
	var was inForce
	if err := json.Unmarshal(text, &was); err != nil {
		return nil, fmt.Errorf("configuration in force: %w", err)
	}
	if err := was.decodeInto(c); err != nil {
		return nil, err
	}
	c.origins = origins{}
	for key, from := range was.Origins {
		c.origins[key] = from
	}
	c.files = &configSet{files: was.Files, settings: map[string]setting{}}
	for _, name := range slices.Sorted(maps.Keys(was.Routes)) {
		r, err := c.inherit(name, nil)
		if err != nil {
			return nil, err
		}
		one := was.Routes[name]
		if err := one.decodeInto(r); err != nil {
			return nil, err
		}
		maps.Copy(r.origins, one.Origins)
		c.routes = append(c.routes, r)
	}
	return c, c.check()
}

// decodeInto sets the values of flags.
func (was *inForce) decodeInto(flags any) error {
	for _, f := range configFields(flags) {
		value, known := was.Values[f.key]
		if !known {
			continue
		}
		f.value.SetZero() // a list of the top level is not written over
		if err := json.Unmarshal(value, f.value.Addr().Interface()); err != nil {
			return fmt.Errorf("configuration in force: setting %s: %w", f.key, err)
		}
	}
	return nil
}
