package main

import "fmt"

// waiting is the state of a publisher that will try again.
const waiting = "waiting"

// status is what the demo reads of .status/status.json.
type status struct {
	Queue struct {
		Ready   int `json:"ready"`
		Leased  int `json:"leased"`
		Delayed int `json:"delayed"`
		Dead    int `json:"dead"`
		Staged  int `json:"staged"`
	} `json:"queue"`
	Publisher struct {
		State              string  `json:"state"`
		ConfirmedTotal     int     `json:"confirmed_total"`
		NextAttemptSeconds float64 `json:"next_attempt_seconds"`
	} `json:"publisher"`
	FS struct {
		OpenFiles          int `json:"open_files"`
		IngestedFilesTotal int `json:"ingested_files_total"`
	} `json:"fs"`
}

// stored is the number of messages that are still to be delivered.
func (s status) stored() int {
	return s.Queue.Ready + s.Queue.Leased + s.Queue.Delayed + s.Queue.Staged
}

// link says what the connection to the broker does.
func (s status) link() string {
	if s.Publisher.State != waiting {
		return s.Publisher.State
	}
	return fmt.Sprintf("next attempt in %.1f s", s.Publisher.NextAttemptSeconds)
}
