// Package shims finds the ATIP document of an executable among the files and the
// embedded table that may describe it. The sources are asked in a fixed order and
// the first one wins whole; a file that exists but cannot be used never falls
// through to a weaker source, because broken is not absent.
package shims
