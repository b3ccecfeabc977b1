// Package filter cleans the output of a command while it streams: it replaces
// secrets by placeholders and bounds the size of what is shown.
//
// It is a seat belt against secrets reaching a log or a model by accident, not a
// guard against a program that wants to leak: docs/limits.md lists what it does
// not see. The guards are the sandbox and the rule which credentials a tool gets.
package filter

//go:generate go run ../scripts/rulegen ..
