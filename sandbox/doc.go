// Package sandbox starts a process that cannot have effects it was not granted,
// and reports what the kernel really enforces.
//
// Derive turns what policy granted into a Profile, Probe finds out by trying what
// this machine can enforce, Select chooses the tier and names every gap, and Start
// applies it all to one operating system thread which then forks. The zero value
// of every type is the strict one.
package sandbox
