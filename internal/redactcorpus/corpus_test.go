package redactcorpus

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	r, err := expand("x: y @crlf", "a=‹{hex:8}› b\nc=‹{pw:1}›\n", 1)
	if err != nil {
		t.Fatal(err)
	}
	if r.Name != "x: y" || len(r.Secrets) != 2 || strings.Count(string(r.Text), "\r\n") != 2 {
		t.Errorf("%q %v %q", r.Name, r.Secrets, r.Text)
	}
	first := string(r.Text[r.Secrets[0].From:r.Secrets[0].To])
	if len(first) != 8 || !strings.HasPrefix(string(r.Text), "a="+first+" b\r\n") {
		t.Errorf("%q in %q", first, r.Text)
	}
	again, err := expand("x: y @crlf", "a=‹{hex:8}› b\nc=‹{pw:1}›\n", 2)
	if err != nil || string(again.Text) == string(r.Text) {
		t.Error("another seed, the same secrets", err)
	}
	wide, err := expand("x @utf16bom", "a=‹{hex:8}›\n", 1)
	if err != nil {
		t.Fatal(err)
	}
	if s := wide.Secrets[0]; s != (Span{2 + 4, 2 + 4 + 16}) || len(wide.Text) != 2+2*11 {
		t.Errorf("%v %q", s, wide.Text)
	}
	for _, bad := range [...]string{"‹a", "{what:3}", "{hex:0}"} {
		if _, err := expand("x", bad, 1); err == nil {
			t.Errorf("%s: accepted", bad)
		}
	}
	if _, err := expand("x @what", "a", 1); err == nil {
		t.Error("an unknown encoding is accepted")
	}
}

// TestComposed: what is composed here decodes to what it stands for.
func TestComposed(t *testing.T) {
	for seed := range uint64(200) {
		state := seed*6364136223846793005 + 1442695040888963407
		fillOne := func(name string) string {
			s, err := fill([]string{"{" + name + ":1}", name, "1"}, state)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		want := fillOne("hard")
		if got, err := url.QueryUnescape(fillOne("hardpct")); err != nil || got != want {
			t.Fatalf("%q, want %q: %v", got, want, err)
		}
		var got string
		if err := json.Unmarshal([]byte(`"`+fillOne("hardjson")+`"`), &got); err != nil || got != want {
			t.Fatalf("%q, want %q: %v", got, want, err)
		}
		basic, err := base64.StdEncoding.DecodeString(fillOne("basic"))
		if err != nil || string(basic) != "deploy:"+fillOne("pw") {
			t.Fatalf("%q: %v", basic, err)
		}
		if parts := strings.Split(fillOne("jwt"), "."); len(parts) != 3 {
			t.Fatal(parts)
		}
	}
}

func TestCount(t *testing.T) {
	r := Record{Name: "x", Text: []byte("k=aaaa l=bbbb m=cccc"), Secrets: []Span{{2, 6}, {9, 13}}}
	var s Score
	s.Count(&r, []Taken{{Span{2, 6}, "whole"}, {Span{10, 14}, "part and one more"}, {Span{16, 20}, "false"}})
	if s.Records != 1 || s.Secrets != 2 || s.Found != 1 || s.Bytes != 8 || s.Leaked != 1 || s.Over != 5 || s.Findings != 3 || s.FalseFindings != 1 || len(s.Missed) != 1 || len(s.Excess) != 1 {
		t.Errorf("%+v", s)
	}
	if s.Recall() != 0.5 || s.LeakedShare() != 0.125 {
		t.Error(s.Recall(), s.LeakedShare())
	}
}

// TestHeldOut: the part of a record is told by its file.
func TestHeldOut(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"outputs-1.txt":      "# a comment\n=== old one\na\n=== env: new one\nb\n",
		"unseen-outputs.txt": "=== env: hidden\nc\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	records, err := Outputs(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range records {
		got = append(got, records[i].Name+"/"+records[i].Family+"/"+records[i].Part())
	}
	want := "old one/earlier sets/earlier sets, env: new one/env/open, env: hidden/env/held out"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s", strings.Join(got, ", "))
	}
}
