// Package day measures how far an ordinary working day is the same behind atip-exec: its tests run
// command strings plain and wrapped in fresh copies of small projects, in a home of its own, and
// count what was the same, asked, denied and broken. The strings and the projects stand in testdata.
package day
