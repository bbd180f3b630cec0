package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"spoolfs/fs/janitor"
)

// storeIDFile is the file of a store with the id by which it knows its claims in
// plain directories.
const storeIDFile = "janitor-id"

// storeID returns the id of a store, and draws it if it has none.
func storeID(store string) (string, error) {
	path := filepath.Join(store, storeIDFile)
	text, err := os.ReadFile(path)
	id := strings.TrimSpace(string(text))
	switch {
	case err == nil && len(id) == len(janitor.NewID()):
		return id, nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("read the id of the store: %w", err)
	}
	id = janitor.NewID()
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write the id of the store: %w", err)
	}
	return id, nil
}
