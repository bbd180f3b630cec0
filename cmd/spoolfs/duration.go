package main

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// durationMapper reads durations, from the command line, the environment and
// files alike.
type durationMapper struct{}

var _ kong.Mapper = durationMapper{}

// Decode is part of kong.Mapper.
func (durationMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	text, err := popText(ctx, "duration")
	if err != nil {
		return err
	}
	d, err := parseDuration(text)
	if err != nil {
		return err
	}
	target.SetInt(int64(d))
	return nil
}

const wantDuration = "want a duration such as 30s, 5m, 48h or 7d"

// parseDuration reads a duration as Go writes it, or a number of days or weeks.
func parseDuration(text string) (time.Duration, error) {
	for suffix, unit := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		number, ok := strings.CutSuffix(text, suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || math.Abs(n*float64(unit)) >= math.MaxInt64 || math.IsNaN(n) {
			return 0, fmt.Errorf("%s, not %q", wantDuration, text)
		}
		return time.Duration(n * float64(unit)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s, not %q", wantDuration, text)
	}
	return d, nil
}
