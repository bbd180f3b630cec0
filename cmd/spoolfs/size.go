package main

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/alecthomas/units"
)

// sizeMapper reads sizes, from the command line, the environment and files
// alike.
type sizeMapper struct{}

var _ kong.Mapper = sizeMapper{}

// Decode is part of kong.Mapper.
func (sizeMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	text, err := popText(ctx, "size")
	if err != nil {
		return err
	}
	n, err := parseSize(text)
	if err != nil {
		return err
	}
	target.SetInt(int64(n))
	return nil
}

// popText takes the value of a flag.
func popText(ctx *kong.DecodeContext, what string) (string, error) {
	token, err := ctx.Scan.PopValue(what)
	return strings.TrimSpace(fmt.Sprint(token.Value)), err
}

const wantSize = "want a size such as 64MiB, 10GiB or 1.5T, or a number of bytes"

// parseSize reads a number of bytes, or one of K, M, G, T, P or E, as 64MiB, 64M or 64MB, or several such as 1GiB512MiB:
// all are powers of 1024.
func parseSize(text string) (units.Base2Bytes, error) {
	number, unit := text, ""
	if i := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }); i >= 0 {
		number, unit = text[:i], strings.TrimSpace(text[i:])
	}
	factor, known := sizeUnits[strings.ToUpper(unit)]
	n, err := strconv.ParseFloat(number, 64)
	if !known || err != nil || n*factor >= math.MaxInt64 {
		if sum, err := units.ParseBase2Bytes(text); err == nil && sum > 0 {
			return sum, nil // as we print it
		}
		return 0, fmt.Errorf("%s, not %q", wantSize, text)
	}
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil {
		return units.Base2Bytes(whole * int64(factor)), nil // exact
	}
	return units.Base2Bytes(n * factor), nil
}

var sizeUnits = func() map[string]float64 {
	known := map[string]float64{"": 1, "B": 1}
	factor := 1.0
	for _, letter := range "KMGTPE" {
		factor *= 1024
		for _, end := range []string{"", "B", "IB"} {
			known[string(letter)+end] = factor
		}
	}
	return known
}()
