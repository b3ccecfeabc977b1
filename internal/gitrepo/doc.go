// Package gitrepo reads git repositories without starting git: which repository git will
// use from a directory, what its configuration says, and where git goes from there
// (submodules, work trees, included files).
//
// It reads regular files only, each up to a bound, and never through a FIFO or a device:
// all of it may have been written by a confined run. What cannot be read is an error, so
// that a caller can treat the repository as one that runs code.
package gitrepo
