package atip

import (
	"strings"
	"testing"
)

func TestFetch(t *testing.T) {
	const good = `"words":["ci","--ignore-scripts"],"hosts":["r.example"],"inputs":["l.json","**/*.go"],"needs":["l.json"],"require":["--locked"],"options":["-q"],"offlineEnv":{"OFF":"1"}`
	doc := func(fetch string) *Document {
		return parse(t, `{"atip":"0.6","name":"t","commands":{"ci":{"description":"d","effects":{"network":true},"arguments":[{"name":"p","type":"string","required":false}],
"options":[{"name":"q","flags":["-q"],"type":"boolean"},{"name":"locked","flags":["--locked"],"type":"boolean"},{"name":"x","flags":["-x"],"type":"boolean"}],"x-atip-fetch":`+fetch+`}}}`)
	}
	for line, want := range map[string]bool{"t ci --locked": true, "t ci -q --locked": true, "t ci": false, "t ci --locked -x": false, "t ci --locked --unknown": false, "t ci --locked p": false} {
		c := resolve(doc("{"+good+"}"), Org, line)
		if got := c.Splits() != nil; got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
	if c := resolve(doc("{"+good+"}"), User, "t ci --locked"); c.Splits() != nil {
		t.Error("a document at rank user splits")
	}
	for _, bad := range []string{`[]`, `{}`, `{` + good + `,"words":"ci"}`, `{` + good + `,"env":{"a b":"c"}}`, `{` + good + `,"env":{"A":1}}`, `{` + good + `,"names":["../x"]}`, `{` + good + `,"names":["/x"]}`,
		`{` + good + `,"names":["a/**"]}`, `{` + good + `,"names":["**/a/b"]}`, `{` + good + `,"mirror":"a-b"}`, `{` + good + `,"settings":{".rc":"k"}}`, `{` + good + `,"mirror":"M","settings":{".rc":""}}`, `{` + good + `,"mirror":"M","settings":{"../rc":"k"}}`, `{` + good + `,"as":["ci"]}`, `{` + good + `,"starts":["./x"]}`, `{` + good + `,"more":1}`, `{"words":["ci"]}`} {
		d, err := Parse([]byte(`{"atip":"0.6","name":"t","version":"1","description":"d","commands":{"ci":{"description":"d","effects":{"network":true},"x-atip-fetch":`+bad+`}}}`), ParseOptions{})
		if err != nil {
			continue // a key twice
		}
		found := false
		for _, f := range d.Warnings() {
			found = found || f.Code == "fetch"
		}
		if c := resolve(d, Org, "t ci --locked"); c.Fetch != nil || !found {
			t.Errorf("%s: fetch %v, finding %v", bad, c.Fetch, found)
		}
	}
	// Files that options name are inputs and words of the call that fetches.
	files := doc(`{"words":["get"],"hosts":["r.example"],"files":["--locked","-x"],"options":["-q"],"offlineEnv":{"OFF":"1"},"local":true}`)
	if c := resolve(files, Org, "t ci -q"); c.Splits() != nil {
		t.Error("without a file it is split")
	}
	for _, bad := range []string{`{"words":["get"],"hosts":["r.example"],"files":["-f"],"offlineEnv":{"OFF":"1"},"local":1}`, `{"words":["get"],"hosts":["r.example"],"files":[],"offlineEnv":{"OFF":"1"}}`} {
		if c := resolve(doc(bad), Org, "t ci"); c.Fetch != nil {
			t.Errorf("%s: %v", bad, c.Fetch)
		}
	}
	value, err := Parse([]byte(`{"atip":"0.6","name":"t","effects":{"network":true},"options":[{"name":"r","flags":["-r"],"type":"file"}],
"x-atip-fetch":{"words":["get"],"hosts":["r.example"],"files":["-r"],"offlineEnv":{"OFF":"1"}}}`), ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{"t -r a.txt": "get -r a.txt", "t -r a -r b/c": "get -r a -r b/c", "t": "", "t -r ../a": "", "t -r /a": "", "t -r **/a": "", "t -r *": "", "t -r a b": ""} {
		c := resolve(value, Org, line)
		got := ""
		if f := c.Splits(); f != nil {
			got = strings.Join(f.Words, " ")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	lint := 0
	for _, f := range doc(`{"words":["ci"],"hosts":["r.example"],"inputs":["l"],"needs":["l"],"options":["--none"],"offlineEnv":{"OFF":"1"}}`).Lint() {
		if f.Code == "L13" {
			lint++
		}
	}
	if lint != 1 {
		t.Errorf("%d findings L13", lint)
	}
}
