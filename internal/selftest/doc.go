// Package selftest tries the known ways out of the sandbox on this machine, under the
// policy of this place, and says which guarantee held.
package selftest
