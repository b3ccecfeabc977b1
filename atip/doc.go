// Package atip is the metadata model of the Agent Tool Introspection Protocol:
// it parses documents, resolves an argv to a command and merges the effects that
// command may have. It does no I/O and imports the standard library only.
package atip
