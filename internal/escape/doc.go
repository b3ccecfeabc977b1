// Package escape holds the ways out of a sandbox that are known from the field, as
// probes: each is one act that must fail inside and succeed outside. The tests of
// package sandbox and the self-test of an installed program try the same ones.
package escape
