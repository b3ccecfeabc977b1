package request

import (
	"bytes"
	"strings"
	"testing"
)

var good = `{"v":1,"id":"1","subject":{"kind":"tool","sha256":"` + strings.Repeat("ab", 32) + `"}}` + "\n"

// Each line differs from the good one in what it says.
func TestRead(t *testing.T) {
	if list, err := Read(strings.NewReader(good)); err != nil || len(list) != 1 {
		t.Fatalf("%v %v", list, err)
	}
	for name, text := range map[string]string{
		"nothing":            "\n",
		"another version":    strings.Replace(good, `"v":1`, `"v":2`, 1),
		"no id":              strings.Replace(good, `"id":"1"`, `"id":""`, 1),
		"unknown field":      strings.Replace(good, `"id"`, `"trusted":true,"id"`, 1),
		"unknown kind":       strings.Replace(good, `"tool"`, `"policy"`, 1),
		"short digest":       strings.Replace(good, "abab", "ab", 1),
		"digest in capitals": strings.Replace(good, "abab", "ABAB", 1),
		"two on one line":    strings.TrimSpace(good) + good,
		"65":                 strings.Repeat(good, 65),
		"HTML":               "<html>\n",
		"truncated":          good[:len(good)/2],
		"distro":             strings.Replace(good, `"id"`, `"distro":"apt","id"`, 1),
		"8 MiB":              good + strings.Repeat(" ", MaxInput),
	} {
		if list, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %d requests", name, len(list))
		}
	}
}

// FuzzRead: what is read is within its bounds, and is read again as what it is.
func FuzzRead(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(strings.Replace(good, `"id"`, `"offline":true,"now":"2026-01-01T00:00:00Z","claims":{"checksum":"sha256:00"},"signatures":[{"format":"auto","data":"e30=","line":1}],"roots":[{"name":"sigstore"}],"require":{"minimumSlsaLevel":3},"id"`, 1)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, err := Read(bytes.NewReader(raw))
		if err != nil {
			return
		}
		if len(list) == 0 || len(list) > MaxLines {
			t.Fatalf("%d requests", len(list))
		}
		text, err := Encode(list)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > MaxInput {
			return // escapes can take more room than what they stand for
		}
		again, err := Read(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if second, err := Encode(again); err != nil || !bytes.Equal(second, text) || len(again) != len(list) {
			t.Errorf("%q was read as %q: %v", text, second, err)
		}
	})
}
