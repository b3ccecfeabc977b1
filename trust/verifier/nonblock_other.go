//go:build !unix

package verifier

const nonblock = 0
