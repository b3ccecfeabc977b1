// Package policy decides whether a command may run: allow, confirm or deny, and
// with which grants. It is pure: files, classes of paths, identities and verdicts
// come in as values, and the same request under the same documents always gives
// the same decision, whatever the order of documents, rules and steps.
package policy
