package atip

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func code(err error) string {
	var e *DocError
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestStrict(t *testing.T) {
	const ok = `"atip":"0.6","name":"t"`
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	commands := func(n int) string {
		return strings.Repeat(`"commands":{"c":{`, n) + strings.Repeat("}}", n)
	}
	for _, c := range []struct{ text, want string }{
		{`{` + ok + `}`, ""},
		{`{` + ok + `,"effects":{"destructive":true,"Destructive":false}}`, "E1101"},
		{`{` + ok + `,"effects":{"Destructive":false}}`, "E1101"},
		{`{` + ok + `,"effects":{"De\u0073tructive":false}}`, "E1101"},
		{`{` + ok + `,"effects":{"de\u0073tructive":false}}`, ""},
		{`{` + ok + `,"effects":{"de\u0073tructive":false,"destructive":true}}`, "E1101"},
		{`{` + ok + `,"effect\u017f":{}}`, "E1101"}, // long s folds to s
		{`{` + ok + `,"networ\u212a":true}`, "E1101"},
		{`{` + ok + `,"globaloptions":[]}`, "E1101"},
		{`{` + ok + `,"globalOptions":[]}`, ""},
		{`{` + ok + `,"custom":1,"Custom":2}`, "E1101"},
		{`{` + ok + `,"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"K":1}`, "E1101"},
		{`{` + ok + `,"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"a":1}`, "E1101"},
		{`{` + ok + `,"commands":{"Get":{},"get":{}}}`, ""},
		{`{` + ok + `,"commands":{"Commands":{},"commands":{"Commands":{}}}}`, "E1101"},
		{`{` + ok + `,"commands":{"Name":{"name":"x"},"name":{}}}`, ""},
		{`{` + ok + `,"commands":{"get":{},"get":{}}}`, "E1101"},
		{`{` + ok + `,"x-acme":{"Owner":1,"owner":2}}`, ""},
		{`{` + ok + `,"x-acme":{"owner":1,"owner":2}}`, "E1101"},
		{`{` + ok + `}{}`, "E1101"},
		{`{` + ok + `} x`, "E1101"},
		{"\ufeff{" + ok + `}`, "E1101"},
		{`{` + ok + `,"d":"\ud800"}`, "E1101"},
		{`{` + ok + `,"d":"\ud800\u0041"}`, "E1101"},
		{`{` + ok + `,"d":"\udc00"}`, "E1101"},
		{`{` + ok + `,"d":"\ud83d\ude00"}`, ""},
		{`{` + ok + `,"d":"\u0000"}`, "E1101"},
		{`{` + ok + `,"d":"` + "\xff" + `"}`, "E1101"},
		{`{` + ok + `,"d":"` + "\xed\xa0\x80" + `"}`, "E1101"},
		{`{` + ok + `,"d":"` + "\n" + `"}`, "E1101"},
		{`{` + ok + `,"d":"a\nb"}`, ""},
		{`{` + ok + `,"d\n":"a"}`, "E1101"},
		{`{"atip":"0.6","name":"a\u001b[2Jb"}`, "E1101"},
		{`{` + ok + `,"options":[{"flags":["-a\u0007"]}]}`, "E1101"},
		{`{` + ok + `,"n":01}`, "E1101"},
		{`{` + ok + `,"n":1.}`, "E1101"},
		{`{` + ok + `,"n":-}`, "E1101"},
		{`{` + ok + `,"n":1e+}`, "E1101"},
		{`{` + ok + `,"n":-0.5e-3}`, ""},
		{`{` + ok + `,}`, "E1101"},
		{`{` + ok + `,"a":[1,]}`, "E1101"},
		{`{` + ok + `,"a":tru}`, "E1101"},
		{`{` + ok + `,"a":NaN}`, "E1101"},
		{`{` + ok + `,"a":1 // c` + "\n}", "E1101"},
		{`{` + ok, "E1101"},
		{``, "E1101"},
		{`[]`, "E1103"},
		{`{` + ok + `,"commands":[]}`, "E1103"},
		{`{` + ok + `,"binary":{"hash":"sha256:xyz"}}`, "E1103"},
		{`{` + ok + `,"a":` + deep(63) + `}`, ""},
		{`{` + ok + `,"a":` + deep(64) + `}`, "E1102"},
		{`{` + ok + `,` + commands(16) + `}`, ""},
		{`{` + ok + `,` + commands(17) + `}`, "E1102"},
		{`{` + ok + `,"d":"` + strings.Repeat("x", 64<<10) + `"}`, "E1102"},
		{`{` + ok + `,"options":[` + strings.Repeat("{},", 512) + `{}]}`, "E1102"},
		{`{"atip":"0.3"}`, ""}, {`{"atip":"0.6.0"}`, ""}, {`{"atip":{"version":"0.6"}}`, ""}, {`{"atip":"0.7"}`, ""},
		{`{"atip":"1.0"}`, "E1104"}, {`{"atip":"0.0"}`, "E1104"}, {`{"atip":"0.06"}`, "E1104"}, {`{"atip":0.6}`, "E1104"}, {`{}`, "E1104"},
		{`{"atip":{"version":"0.6","minAgentVersion":"0.7"}}`, "E1104"},
		{`{"atip":{"version":"0.6","minAgentVersion":"0.6"}}`, ""},
		{`{"atip":{"version":"0.6","minAgentVersion":6}}`, "E1104"},
	} {
		_, err := Parse([]byte(c.text), ParseOptions{})
		if code(err) != c.want {
			t.Errorf("%.120q: %v, want %q", c.text, err, c.want)
		}
	}
	if _, err := Parse(make([]byte, 100), ParseOptions{MaxBytes: 99}); code(err) != "E1102" {
		t.Error(err)
	}
}

func TestComments(t *testing.T) {
	const text = "{ // one\n  \"a\": /* two\n */ \"//x\", \"b\": [1, 2],}"
	_, err := ParseTree([]byte(text), ParseOptions{Comments: true})
	var e *DocError
	if !errors.As(err, &e) || e.Line != 3 || e.Col != 24 {
		t.Fatalf("position: %v", err)
	}
	n, err := ParseTree([]byte(strings.Replace(text, ",}", "}", 1)), ParseOptions{Comments: true})
	if err != nil {
		t.Fatal(err)
	}
	if a := n.Get("a"); a.Text != "//x" || a.Line != 3 || a.Col != 5 || a.KeyLine != 2 || a.KeyCol != 3 {
		t.Errorf("%+v", a)
	}
	if b := n.Get("b"); len(b.Items) != 2 || b.Items[1].Text != "2" || b.Items[1].Col != 21 {
		t.Errorf("%+v", b)
	}
	if _, err := StripComments([]byte("/* open")); code(err) != "E1101" {
		t.Error(err)
	}
}

func TestTreeKeys(t *testing.T) {
	o := ParseOptions{Known: []string{"autoApprove"}, DataKeys: []string{"tools"}}
	for text, want := range map[string]string{
		`{"autoApprove":1}`:            "",
		`{"autoapprove":1}`:            "E1101",
		`{"tools":{"Git":1,"git":2}}`:  "",
		`{"others":{"Git":1,"git":2}}`: "E1101",
	} {
		if err := ScanStrict([]byte(text), o); code(err) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzScan holds the scanner against encoding/json: what is accepted here is accepted
// there, reads the same, and survives being written again.
func FuzzScan(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,"x\u00e9\ud83d\ude00",true,null,{}]}`, `"\u0041\n"`, `[[[]]]`, `{"a":1,"A":2}`, "\xff", `{"k\u212a":0}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		n, err := ParseTree(raw, ParseOptions{})
		if err != nil {
			if ScanStrict(raw, ParseOptions{}) == nil {
				t.Fatalf("ScanStrict accepts what ParseTree refuses: %v", err)
			}
			return
		}
		var want any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("encoding/json refuses: %v", err)
		}
		compare(t, n, want)
	})
}

func compare(t *testing.T, n *Node, want any) {
	switch w := want.(type) {
	case string:
		if n.Kind != KindString || n.Text != w {
			t.Fatalf("%q, want %q", n.Text, w)
		}
	case json.Number:
		if n.Kind != KindNumber || n.Text != w.String() {
			t.Fatalf("%q, want %q", n.Text, w)
		}
	case bool:
		if b, ok := n.Bool(); !ok || b != w {
			t.Fatal("boolean differs")
		}
	case []any:
		if n.Kind != KindArray || len(n.Items) != len(w) {
			t.Fatal("array differs")
		}
		for i := range w {
			compare(t, n.Items[i], w[i])
		}
	case map[string]any:
		if n.Kind != KindObject || len(n.Items) != len(w) {
			t.Fatal("object differs")
		}
		for _, m := range n.Items {
			compare(t, m, w[m.Key])
		}
	}
}
