//go:build !linux

package tools

import (
	"io"
	"os"
)

func protocolStreams() (io.ReadCloser, io.WriteCloser, error) {
	out := os.Stdout
	os.Stdout = os.Stderr
	return os.Stdin, out, nil
}
