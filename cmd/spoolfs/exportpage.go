package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	"spoolfs/fs"
	"spoolfs/queue"
)

// A running daemon shows its store for an export in pages: .status/export is an
// empty one, and .status/export.<key> are the others. A page is lines of a bundle
// and one more:
//
//	{"spoolfs_page": 1, "key": "<its key>", "messages": 256, "sum": "<SHA-256 of the lines above>", "next": "<key>"}
//
// A key is a place in the store, so that a reader, or a daemon that has taken over
// from another, goes on where it was. The last page has no next.
const pageFormat = 1

// pageEnd is the last line of a page.
type pageEnd struct {
	Format   int    `json:"spoolfs_page"`
	Key      string `json:"key"`
	Messages int    `json:"messages"`
	Sum      string `json:"sum"`
	Next     string `json:"next"`
}

// pageMessages and pageBytes end a page.
const (
	pageMessages = 256
	pageBytes    = 1 << 20
)

// pageStates are the states in the order of pages. What is delayed comes before
// what is ready: it becomes that, and is met again then.
var pageStates = []string{stateDelayed, stateReady, stateDead, statePartial}

// exportFile is .status/export.
func (d *daemon) exportFile() fs.StatusFile {
	return fs.StatusFile{
		Name: "export", Private: true, Pages: d.exportPage,
		Content: func() []byte {
			return newPage("", nil, 0, pageKey{state: pageStates[0], route: d.queue.Routes()[0].Name()}.String())
		},
	}
}

func newPage(key string, lines []byte, messages int, next string) []byte {
	sum := sha256.Sum256(lines)
	return append(lines, jsonLine(pageEnd{pageFormat, key, messages, hex.EncodeToString(sum[:]), next})...)
}

// pageKey is where a page begins: behind a place.
type pageKey struct {
	state string
	after queue.Place
	route string
}

func (k pageKey) String() string {
	return fmt.Sprintf("%s.%d.%d.%s", k.state, k.after.Due, k.after.Seq, url.QueryEscape(k.route))
}

// errNoPage says that a key is none.
var errNoPage = fmt.Errorf("there is no such page: %w", syscall.ENOENT)

func parsePageKey(text string) (k pageKey, err error) {
	words := strings.SplitN(text, ".", 4)
	if len(words) < 4 {
		return k, errNoPage
	}
	due, errDue := strconv.ParseInt(words[1], 10, 64)
	seq, errSeq := strconv.ParseUint(words[2], 10, 64)
	route, errRoute := url.QueryUnescape(words[3])
	if errors.Join(errDue, errSeq, errRoute) != nil {
		return k, errNoPage
	}
	return pageKey{words[0], queue.Place{Due: due, Seq: seq}, route}, nil
}

// next is the key of the state behind a state, or of the first one of the route behind
// a route; empty at the end.
func (k pageKey) next(routes []*queue.Route) string {
	for i, state := range pageStates[:len(pageStates)-1] {
		if state == k.state {
			return pageKey{state: pageStates[i+1], route: k.route}.String()
		}
	}
	for i, r := range routes[:len(routes)-1] {
		if r.Name() == k.route {
			return pageKey{state: pageStates[0], route: routes[i+1].Name()}.String()
		}
	}
	return ""
}

// exportPage makes the page of a key.
func (d *daemon) exportPage(text string) ([]byte, error) {
	k, err := parsePageKey(text)
	if err != nil {
		return nil, err
	}
	routes := d.queue.Routes()
	for _, s := range bundleStates {
		for _, r := range routes {
			if s.name == k.state && k.route == r.Name() {
				return pageBehind(r, s.state, k, routes)
			}
		}
	}
	return nil, errNoPage
}

func pageBehind(r *queue.Route, state queue.State, k pageKey, routes []*queue.Route) ([]byte, error) {
	var lines []byte
	messages, key := 0, k.String()
	for e, err := range r.Entries(state, k.after) {
		if err != nil {
			return nil, err
		}
		lines = append(lines, bundleLine(r.Name(), k.state, e.Message)...)
		k.after = e.Place
		if messages++; messages == pageMessages || len(lines) >= pageBytes {
			return newPage(key, lines, messages, k.String()), nil
		}
	}
	return newPage(key, lines, messages, k.next(routes)), nil
}
