package filter

import (
	"bytes"
	"strings"
)

const (
	placeholderHead = "[REDACTED:"
	maxPlaceholder  = len(placeholderHead) + 48 + 1 + 6 + 1
	tagDigits       = 6
)

// appendPlaceholder appends [REDACTED:rule:tag] or [REDACTED:rule]. No part of
// the secret is in it: shortened keys were seen written back as if real.
func appendPlaceholder(b []byte, rule, tag string) []byte {
	b = append(b, placeholderHead...)
	b = append(b, rule...)
	if tag != "" {
		b = append(b, ':')
		b = append(b, tag...)
	}
	return append(b, ']')
}

// HasPlaceholder reports whether text holds a full placeholder of ours: a value
// that was redacted once and comes back as if it were real.
func HasPlaceholder(text string) bool {
	for {
		i := strings.Index(text, placeholderHead)
		if i < 0 {
			return false
		}
		text = text[i+len(placeholderHead):]
		end := strings.IndexByte(text, ']')
		if end < 0 || end > maxPlaceholder {
			continue
		}
		rule, tag, tagged := strings.Cut(text[:end], ":")
		if !ruleName(rule) {
			continue
		}
		if !tagged || isTag(tag) {
			return true
		}
	}
}

// endsPlaceholder reports whether text, which ends with a bracket, ends with a placeholder.
func endsPlaceholder(text []byte) bool {
	text = text[max(0, len(text)-maxPlaceholder):]
	i := bytes.LastIndex(text, []byte(placeholderHead))
	return i >= 0 && bytes.IndexByte(text[i:], ']') == len(text)-i-1
}

func isTag(s string) bool {
	if len(s) != tagDigits {
		return false
	}
	for i := range len(s) {
		if !sets[setHex].has(s[i]) {
			return false
		}
	}
	return true
}
