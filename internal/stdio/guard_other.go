//go:build !linux

package stdio

func (b *Binding) guardStdin() error { return nil }
