package jsonedit

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestEdit: what is put in stands where it belongs, and what is taken out again leaves the
// bytes that were there, but for objects and arrays that were made for it.
func TestEdit(t *testing.T) {
	for name, row := range map[string]struct{ before, after, back string }{
		"nothing":   {"", "{\n  \"hooks\": {\n    \"Pre\": [\n      {\n        \"m\": 1\n      }\n    ]\n  }\n}\n", "{\n  \"hooks\": {\n    \"Pre\": []\n  }\n}\n"},
		"empty":     {"{}\n", "{\n  \"hooks\": {\n    \"Pre\": [\n      {\n        \"m\": 1\n      }\n    ]\n  }\n}\n", "{\n  \"hooks\": {\n    \"Pre\": []\n  }\n}\n"},
		"one line":  {`{"a":1}`, `{"a":1, "hooks": {"Pre":[{"m":1}]}}`, `{"a":1, "hooks": {"Pre":[]}}`},
		"other key": {"{\n\t\"a\": 1\n}", "{\n\t\"a\": 1,\n\t\"hooks\": {\n\t\t\"Pre\": [\n\t\t\t{\n\t\t\t\t\"m\": 1\n\t\t\t}\n\t\t]\n\t}\n}", "{\n\t\"a\": 1,\n\t\"hooks\": {\n\t\t\"Pre\": []\n\t}\n}"},
		"foreign": {"{\r\n  // mine\r\n  \"hooks\": {\"Pre\": [\r\n    {\"m\": 0} // first\r\n  ]}, // last\r\n}\r\n",
			"{\r\n  // mine\r\n  \"hooks\": {\"Pre\": [\r\n    {\"m\": 0}, // first\r\n    {\r\n      \"m\": 1\r\n    }\r\n  ]}, // last\r\n}\r\n",
			"{\r\n  // mine\r\n  \"hooks\": {\"Pre\": [\r\n    {\"m\": 0} // first\r\n  ]}, // last\r\n}\r\n"},
		"trailing comma": {"{\n  \"a\": 1, /* , */\n}", "{\n  \"a\": 1, /* , */\n  \"hooks\": {\n    \"Pre\": [\n      {\n        \"m\": 1\n      }\n    ]\n  }\n}", "{\n  \"a\": 1, /* , */\n  \"hooks\": {\n    \"Pre\": []\n  }\n}"},
	} {
		d, err := Parse([]byte(row.before))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		after, err := d.Append([]string{"hooks", "Pre"}, `{"m":1}`)
		if err != nil || string(after) != row.after {
			t.Errorf("%s: %v\n%q, want\n%q", name, err, after, row.after)
			continue
		}
		d, err = Parse(after)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		items := d.Items("hooks", "Pre")
		if items[len(items)-1] != `{"m":1}` {
			t.Errorf("%s: %q", name, items)
		}
		if back := d.RemoveItem([]string{"hooks", "Pre"}, len(items)-1); string(back) != row.back {
			t.Errorf("%s: taken out:\n%q, want\n%q", name, back, row.back)
		}
	}
}

func TestSet(t *testing.T) {
	for before, want := range map[string]string{
		`{"env":{"A":"1"}}`:            `{"env":{"A":"1", "S": "/x"}}`,
		`{"env":{"S":"/y"}}`:           `{"env":{"S":"/x"}}`,
		"{\n    \"env\": {}\n}":        "{\n    \"env\": {\n        \"S\": \"/x\"\n    }\n}",
		"{ /* \"env\": {} */ \"b\":2}": "{ /* \"env\": {} */ \"b\":2, \"env\": {\"S\":\"/x\"}}",
	} {
		d, err := Parse([]byte(before))
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Set([]string{"env", "S"}, `"/x"`)
		if err != nil || string(got) != want {
			t.Errorf("%q: %v %q, want %q", before, err, got, want)
		}
	}
	d, _ := Parse([]byte(`{"env":7}`))
	if _, err := d.Set([]string{"env", "S"}, `1`); err == nil {
		t.Error("a number has no members")
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"{\n \"a\": }": "2:7:", "{\"a\":1,\"a\":2}": "stands twice", "[]": "not an object", "{} x": "behind the end", "{\"a\":1 \"b\":2}": "comma",
		"/* x": "comment", "{\"a": "without an end", "\xff{}": "UTF-8", "{\"a\":\"\\q\"}": "malformed string", "{'a':1}": "double quotes",
		strings.Repeat(`{"a":`, 100): "deeply",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzEdit holds that an edit of any text that can be read leaves one that can be read, with
// the item in it, and that taking it out again leaves the rest of the values as they were.
func FuzzEdit(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"hooks":{"Pre":[1,2,]}}`, "{\r\n//x\r\n}", "\ufeff{\"a\":[{}]/**/}", `{"hooks":{"Pre":[]//
}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse(text)
		if err != nil {
			return
		}
		path := []string{"hooks", "Pre"}
		after, err := d.Append(path, `{"m":[1]}`)
		if err != nil {
			return
		}
		e, err := Parse(after)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, after, err)
		}
		items := e.Items(path...)
		if len(items) != len(d.Items(path...))+1 || items[len(items)-1] != `{"m":[1]}` {
			t.Fatalf("%q became %q with %q", text, after, items)
		}
		back, err := Parse(e.RemoveItem(path, len(items)-1))
		if err != nil {
			t.Fatalf("%q: %v", after, err)
		}
		if d.find(path) != nil && back.Get() != d.Get() {
			t.Fatalf("%q: %s", text, back.Get())
		}
		if back.root != nil && !json.Valid([]byte(back.Get())) {
			t.Fatalf("%q: %s", text, back.Get())
		}
	})
}
