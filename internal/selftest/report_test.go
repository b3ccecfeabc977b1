package selftest

import "testing"

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		statuses []string
		gaps     map[string]string
		want     string
		ok       bool
	}{
		"all denied":                   {[]string{denied, denied}, nil, held, true},
		"one escaped":                  {[]string{denied, escaped}, nil, escaped, false},
		"an escape nobody claims":      {[]string{escaped}, map[string]string{"g": "why"}, gap, true},
		"n/a is never denied":          {[]string{notHere}, nil, notHere, true},
		"n/a beside a refusal":         {[]string{notHere, denied}, nil, held, true},
		"only a failed launch":         {[]string{launchFail}, nil, unproven, false},
		"unclear":                      {[]string{unclear, notHere}, nil, unproven, false},
		"no probe":                     {nil, nil, unproven, false},
		"of another guarantee":         {[]string{"other"}, nil, unproven, false},
		"an escape beats all the rest": {[]string{notHere, unclear, escaped, denied}, nil, escaped, false},
	} {
		var r Report
		for _, s := range tc.statuses {
			p := Probe{Guarantee: "g", Status: s}
			if s == "other" {
				p = Probe{Guarantee: "h", Status: denied}
			}
			r.Probes = append(r.Probes, p)
		}
		r.judge([]string{"g"}, tc.gaps)
		if got := r.Guarantees[0].Status; got != tc.want || r.OK != tc.ok {
			t.Errorf("%s: %s, ok %v", name, got, r.OK)
		}
	}
}
