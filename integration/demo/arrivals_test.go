package main

import (
	"fmt"
	"strings"
	"testing"

	"spoolfs/integration/rabbit"
)

// Guarantee 1: what is not as it should be is seen.
func TestArrivals_Check(t *testing.T) {
	jobs := []job{{writer: 0, first: 0, count: 2}, {writer: 1, first: 2, count: 1}}
	body := func(path string) []byte { return fmt.Appendf(nil, `{"relPath": %q}`, path) }
	all := func() []rabbit.Delivery {
		return []rabbit.Delivery{
			{MessageID: "a", Body: body("run/000/f00000.grib2")},
			{MessageID: "b", Body: body("run/001/f00002.grib2")},
			{MessageID: "c", Body: body("run/000/f00001.grib2")},
		}
	}
	for _, tt := range []struct {
		name, want string
		change     func(d []rabbit.Delivery) []rabbit.Delivery
	}{
		{"all", "", func(d []rabbit.Delivery) []rabbit.Delivery { return d }},
		{"missing", "1 of 3 messages are missing (such as run/000/f00001.grib2)", func(d []rabbit.Delivery) []rabbit.Delivery { return d[:2] }},
		{"repeated", "1 arrived more than once (such as run/000/f00000.grib2)", func(d []rabbit.Delivery) []rabbit.Delivery { return append(d, d[0]) }},
		{"stranger", "1 are not ours", func(d []rabbit.Delivery) []rabbit.Delivery {
			return append(d, rabbit.Delivery{MessageID: "d", Body: body("run/009/f00000.grib2")})
		}},
		{"no message", `1 are not ours (such as "d" nonsense)`, func(d []rabbit.Delivery) []rabbit.Delivery {
			return append(d, rabbit.Delivery{MessageID: "d", Body: []byte("nonsense")})
		}},
		{"no id", "1 are not ours", func(d []rabbit.Delivery) []rabbit.Delivery { d[1].MessageID = ""; return d }},
		{"same id", "3 messages have only 2 different ids", func(d []rabbit.Delivery) []rabbit.Delivery { d[1].MessageID = "a"; return d }},
	} {
		a := newArrivals(jobs)
		for _, d := range tt.change(all()) {
			a.add(d)
		}
		err := a.check()
		if got := fmt.Sprint(err); (err == nil) != (tt.want == "") || !strings.Contains(got, tt.want) && err != nil {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
