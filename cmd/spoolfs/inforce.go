package main

import (
	"encoding/json"
	"fmt"

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
}

// encode writes the configuration down.
func (c *mountCommand) encode() (json.RawMessage, error) {
	now := inForce{Values: map[string]json.RawMessage{}, Origins: c.origins, Files: c.files.files}
	for _, f := range configFields(c) {
		text, err := json.Marshal(f.value.Interface())
		if err != nil {
			return nil, fmt.Errorf("setting %s: %w", f.key, err)
		}
		now.Values[f.key] = text
	}
	return json.Marshal(now)
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
	for _, f := range configFields(c) {
		value, known := was.Values[f.key]
		if !known {
			continue
		}
		if err := json.Unmarshal(value, f.value.Addr().Interface()); err != nil {
			return nil, fmt.Errorf("configuration in force: setting %s: %w", f.key, err)
		}
	}
	c.origins = origins{}
	for key, from := range was.Origins {
		c.origins[key] = from
	}
	c.files = &configSet{files: was.Files, settings: map[string]setting{}}
	return c, c.check()
}
