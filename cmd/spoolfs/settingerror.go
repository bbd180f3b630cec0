package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// settingError is a value that cannot be used.
type settingError struct {
	key  string
	text string // what is wrong with it, and what is wanted
}

// Error names the flag. placed names where the value comes from.
func (e *settingError) Error() string {
	return fmt.Sprintf("--%s: %s", strings.ReplaceAll(e.key, "_", "-"), e.text)
}

// badSetting says what is wrong with the value of a key.
func badSetting(key, format string, args ...any) error {
	return withCode(exitUsage, &settingError{key, fmt.Sprintf(format, args...)})
}

// placed adds to an error about a value where that comes from, if it is not the
// command line.
func (o origins) placed(err error) error {
	var bad *settingError
	if !errors.As(err, &bad) {
		return err
	}
	switch from := o[bad.key]; {
	case from == "" || from == originDefault || from == originArgument || strings.HasPrefix(from, "--"):
		return err
	case strings.Contains(from, ":"):
		return withCode(exitConfig, fmt.Errorf("%s: %s: %s", from, bad.key, bad.text))
	default:
		return withCode(exitUsage, fmt.Errorf("%s: %s", from, bad.text))
	}
}

// firstPath is the first of a list of paths with colons between.
func firstPath(list string) string {
	first, _, _ := strings.Cut(list, string(filepath.ListSeparator))
	return first
}
