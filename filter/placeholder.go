package filter

// HasPlaceholder reports whether text holds a full placeholder of ours: a value
// that was redacted once and comes back as if it were real.
func HasPlaceholder(text string) bool { return true }
