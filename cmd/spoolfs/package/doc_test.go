// Package packaging_test holds what operators get against what is there: packages
// are built, installed, upgraded under load and removed on this very system, below
// an overlay that vanishes with all that was done.
package packaging_test
