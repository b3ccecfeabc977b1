//go:build !linux

package run

func (x *execution) guardStdin() error { return nil }
