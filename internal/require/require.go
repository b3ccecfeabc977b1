// Package require decides what a test does where this machine lacks what it needs. The
// variable ATIP_REQUIRE names, separated by blanks or commas, what a machine must have: CI
// names all that its kernel has, so that no test there can skip itself unseen.
package require

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Feature returns where missing is nil. Else it fails the test if ATIP_REQUIRE names
// feature, and skips it if not; missing says what was tried and how it ended.
func Feature(t testing.TB, feature string, missing error) {
	t.Helper()
	if missing == nil {
		return
	}
	named := strings.FieldsFunc(os.Getenv("ATIP_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' })
	if slices.Contains(named, feature) {
		t.Fatalf("%s is required and missing: %v", feature, missing)
	}
	t.Skipf("%s is missing: %v", feature, missing)
}
