// Package atip is the metadata model of the Agent Tool Introspection Protocol:
// it parses documents, resolves an argv to a command and merges the effects that
// command may have. It does no I/O and imports the standard library only.
//
// A call travels through it in four steps:
//
//	Parse    strict scan of every byte into a tape; nothing is decoded
//	read     the words are split as the tool would split them; a word whose role is
//	         not known forks the reading (scan.go, flags.go)
//	weigh    each reading's effects: effects, then x-atip-effects (effects.go)
//	fill     the readings are joined, the worst of each effect counts (resolve.go)
//
// What is not stated is unknown, never "no".
package atip
