//go:build !linux

package tmpshare

// In copies nothing: there are no private roots here.
func (s Share) In() error { return nil }

// Out copies nothing.
func (s Share) Out(_, _ func(path string) bool) ([]Left, error) { return nil, nil }

// Readable lists nothing.
func (s Share) Readable(int) []string { return nil }

// Copies is never true.
func (s Share) Copies(string) bool { return false }
