package sandbox

import (
	"slices"
	"testing"
)

// TestGatedRun: at both tiers a start that the gate refuses does not happen, the rest runs,
// and the same script without a gate runs all of it.
func TestGatedRun(t *testing.T) {
	needLandlock(t, 6)
	script := `/bin/echo first; /bin/echo no; echo $?; echo from-pipe | xargs /bin/echo; printf no | xargs /bin/echo; exec /bin/echo last`
	for _, tier := range []Tier{T2, T3} {
		w := newWorld(t)
		p := w.profile(t, func(in *Input) { in.Policy.Tier = tier })
		j := job{Profile: p, Path: "/usr/bin/bash", Argv: []string{"bash", "-c", script}, Env: []string{"PATH=/usr/bin"}, Dir: w.ws}
		if r := confined(t, j); r.Err != "" || r.Out != "first\nno\n0\nfrom-pipe\nno\nlast\n" {
			t.Errorf("%s without a gate: %q %s", tier, r.Out, r.Err)
		}
		j.Refuse = "no"
		r := confined(t, j)
		if r.Err != "" || r.Exit.Code != 0 || r.Rest != "[]" || r.Receipt.Tier != tier {
			t.Errorf("%s: %+v", tier, r.brief())
		}
		if !slices.Equal(r.Refused, []string{"/bin/echo no", "/bin/echo no"}) {
			t.Errorf("%s: refused %q: %q", tier, r.Refused, r.Out)
		}
		if want := "first\nbash: line 1: /bin/echo: Permission denied\n126\nfrom-pipe\nxargs: /bin/echo: Permission denied\nlast\n"; r.Out != want {
			t.Errorf("%s: %q", tier, r.Out)
		}
	}
}
