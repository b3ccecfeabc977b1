package marshal_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/marshal"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/trust"
)

// same demands that marshal.JSON writes what json.Marshal does.
func same(t *testing.T, v any) {
	t.Helper()
	want, werr := json.Marshal(v)
	got, err := marshal.JSON(v)
	if (err == nil) != (werr == nil) {
		t.Errorf("%#v: error %v, json says %v", v, err, werr)
	} else if err == nil && string(got) != string(want) {
		t.Errorf("%#v\n got %s\nwant %s", v, got, want)
	}
}

// shout has its method on the pointer, which counts only where the value has an address.
type shout string

func (s *shout) MarshalText() ([]byte, error) { return []byte(*s + "!"), nil }

func TestEncodeIsMarshal(t *testing.T) {
	type inner struct {
		A int            `json:"a,omitempty"`
		B []string       `json:"b"`
		C map[string]int `json:",omitempty"`
		d int
		E *inner        `json:"e,omitempty"`
		F time.Duration `json:"-"`
		G float64       `json:"g"`
		H [2]bool
		I any `json:"i"`
	}
	type embeds struct {
		inner
		Z int `json:"z,string"`
	}
	for _, v := range []any{
		nil, true, 7, -7, uint8(9), 1.5, "plain", "quo\"te", "back\\slash", "<&>", "\x01\n\t", "ü\u2028", "\xff\xfe", "",
		[]string(nil), []string{}, []string{"a", "b"}, []any{1, "a", nil}, []byte("bytes"), [3]int{1, 2, 3},
		map[string]any(nil), map[string]any{}, map[string]any{"b": 1, "a": []int{2}, "<": nil}, map[int]string{2: "b", 1: "a"},
		inner{}, &inner{A: 1, B: []string{"x"}, C: map[string]int{"k": 1}, d: 2, E: &inner{I: "deep"}, G: 0.1, I: inner{}},
		shout("a"), []shout{"a"}, map[string]any{"a": shout("b")}, &struct{ S shout }{"a"}, struct{ S shout }{"a"}, new(shout),
		embeds{Z: 3}, (*inner)(nil), time.Unix(0, 0).UTC(), json.RawMessage(`{"raw":1}`), make(chan int), map[string]any{"f": func() {}},
		policy.Allow, atip.Yes, sandbox.Read | sandbox.Exec, sandbox.T2, atip.Resource{Kind: "path", Value: "a", Access: atip.AccessRead}, trust.Verdict{},
		sandbox.Receipt{}, filter.Report{}, sandbox.Tree{}, sandbox.Settlement{}.Receipt(), status.Document{}, &status.Timing{RunMS: 3},
	} {
		same(t, v)
	}
}

// TestRedacted: a value is found in each string of an object, also where its encoding has escaped
// characters in it, and an object without one stays as it is.
func TestRedacted(t *testing.T) {
	for _, value := range []string{"plain-value", "of\ntwo lines", `a "quoted" one`, `back\slash`, "<angle> & more", "bell\a and \u2028", "ends in \\"} {
		clean := func(text string) string { return strings.ReplaceAll(text, value, "[redacted]") }
		for _, text := range []string{value, "before " + value, value + "\nafter", "quoted \"\\\" " + value + "\\"} {
			object, err := json.Marshal(map[string]any{"a\nkey": "line\nbreak", "list": []any{"x\\", map[string]any{"deep": text}}, "n": 1})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(marshal.Redacted(object, clean)); !strings.Contains(got, "[redacted]") || strings.Contains(got, strings.Trim(string(must(json.Marshal(value))), `"`)) {
				t.Errorf("%q in %q: %s", value, text, got)
			}
		}
		object := must(json.Marshal(map[string]any{"a": "other\n" + value[1:], "b": "\\\"", "c": []string{"", "\t"}}))
		if got := marshal.Redacted(object, clean); !bytes.Equal(got, object) {
			t.Errorf("%q: %s is now %s", value, object, got)
		}
	}
	if got := string(marshal.Redacted([]byte(`{"a":"b\"`), strings.ToLower)); !strings.Contains(got, "unprintable") {
		t.Errorf("what is no JSON is kept: %s", got)
	}
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}
