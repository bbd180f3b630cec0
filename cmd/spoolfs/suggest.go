package main

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// formerNames are what people write who know Sarracenia, or who look for the
// password.
var formerNames = map[string]string{
	"post_broker": "broker", "post_exchange": "exchange", "post_topicprefix": "topic_prefix",
	"post_exchangesplit": "exchange_split", "messageratemax": "rate", "url": "broker", "brokers": "broker",
	"password": "password_file", "state_dir": "store", "mount": "mountpoint",
}

// suggest finds the key that was meant by an unknown one; empty if none is like
// it.
func suggest(unknown string, keys []string) string {
	plain := squeezed(unknown)
	if known := formerNames[strings.ToLower(unknown)]; known != "" {
		return known
	}
	best, least := "", max(1, len(plain)/3)+1
	for _, key := range keys {
		if d := levenshtein.ComputeDistance(plain, squeezed(key)); d < least {
			best, least = key, d
		}
	}
	return best
}

// squeezed is a key without what people write in different ways.
func squeezed(key string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "", ".", "").Replace(key))
}
