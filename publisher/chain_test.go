package publisher

import (
	"strings"
	"testing"
)

func TestCheckFollows(t *testing.T) {
	dense := map[string]Follows{}
	for i := range 26 {
		dense[string(rune('a'+i))] = Follows{Then: strings.Split("abcdefghijklmnopqrstuvwxyz"[i+1:], "")}
	}
	long := strings.Repeat("x", 110)
	for _, tt := range []struct {
		name   string
		routes map[string]Follows
		want   string
	}{
		{"none", nil, ""},
		{"chain", map[string]Follows{"a": {Then: []string{"b", "c"}, Else: "d"}, "b": {Then: []string{"c"}, Else: "d"}, "c": {Else: "d"}, "d": {}}, ""},
		{"dense", dense, ""}, // of 2^25 ways
		{"itself", map[string]Follows{"a": {Else: "a"}}, "in a circle: a > a"},
		{"circle", map[string]Follows{"a": {Then: []string{"b"}}, "b": {Else: "c"}, "c": {Then: []string{"d", "b"}}, "d": {}}, "in a circle: a > b > c > b"},
		{"unknown", map[string]Follows{"a": {Then: []string{"b"}}}, `route "a" is followed by "b", which there is not`},
		{"twice", map[string]Follows{"a": {Then: []string{"b", "c", "b"}}, "b": {}, "c": {}}, `route "a" is followed by "b" twice`},
		{"confirmed or failed", map[string]Follows{"a": {Then: []string{"b"}, Else: "b"}, "b": {}}, ""},
		{"fits", map[string]Follows{"a": {Then: []string{long}}, long: {}}, ""},
		{"long", map[string]Follows{"a": {Then: []string{long}}, long: {Then: []string{long[1:]}}, long[1:]: {}}, "get 264 bytes long, AMQP takes 255"},
	} {
		err := CheckFollows(tt.routes)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
