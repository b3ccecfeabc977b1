package atip

import (
	"slices"
	"strings"
	"testing"
)

func TestExecs(t *testing.T) {
	d := parse(t, `{"atip":"0.6","name":"t","x-atip-execs":["ssh"],"commands":{"up":{"x-atip-execs":["/usr/lib/t/**","/opt/x","../evil","a*","/","./x","/a/../b",""]},"down":{},"none":{"x-atip-execs":[]}}}`)
	for line, want := range map[string]string{"t up": "ssh /usr/lib/t/** /opt/x", "t down": "ssh", "t": "ssh"} {
		c := resolve(d, Org, line)
		got := slices.Clone(c.Execs)
		slices.Sort(got)
		wanted := strings.Fields(want)
		slices.Sort(wanted)
		if !c.ExecsKnown || !slices.Equal(got, wanted) {
			t.Errorf("%s: %v %v, want %s", line, c.ExecsKnown, c.Execs, want)
		}
	}
	if c := resolve(d, User, "t up"); c.ExecsKnown || len(c.Execs) != 0 {
		t.Errorf("at rank user: %+v", c.Execs)
	}
	if c := resolve(parse(t, `{"atip":"0.6","name":"t","x-atip-execs":[]}`), Org, "t"); !c.ExecsKnown || len(c.Execs) != 0 {
		t.Errorf("an empty list is no list: %v", c.ExecsKnown)
	}
	if c := resolve(parse(t, `{"atip":"0.6","name":"t"}`), Org, "t"); c.ExecsKnown {
		t.Error("a list that is not there is known")
	}
	bad := 0
	for _, f := range d.Warnings() {
		if f.Code == "execs" {
			bad++
		}
	}
	if bad != 6 {
		t.Errorf("%d findings of six bad entries: %+v", bad, d.Warnings())
	}
}
