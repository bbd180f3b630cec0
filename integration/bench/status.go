package main

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// status is what is read of .status/status.json.
type status struct {
	Queue struct {
		Ready      int `json:"ready"`
		Leased     int `json:"leased"`
		StoreBytes int `json:"store_bytes"`
	} `json:"queue"`
	Publisher struct {
		Confirmed int `json:"confirmed_total"`
	} `json:"publisher"`
	FS struct {
		Messages int `json:"ingested_messages_total"`
	} `json:"fs"`
}

func (s *site) status() (st status, err error) {
	text, err := os.ReadFile(filepath.Join(s.dir, ".status", "status.json"))
	if err == nil {
		err = json.Unmarshal(text, &st)
	}
	return st, err
}
