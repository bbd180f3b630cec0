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
	id, err := knownStoreID(store)
	if id != "" || err != nil {
		return id, err
	}
	id = janitor.NewID()
	if err := os.WriteFile(filepath.Join(store, storeIDFile), []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write the id of the store: %w", err)
	}
	return id, nil
}

// knownStoreID returns the id of a store; "" if it has none.
func knownStoreID(store string) (string, error) {
	text, err := os.ReadFile(filepath.Join(store, storeIDFile))
	id := strings.TrimSpace(string(text))
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("read the id of the store: %w", err)
	case len(id) != len(janitor.NewID()):
		return "", nil
	}
	return id, nil
}
