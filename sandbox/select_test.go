package sandbox

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func gapNames(gaps []Gap) string {
	var out []string
	for _, g := range gaps {
		out = append(out, string(g.Guarantee))
	}
	return strings.Join(out, " ")
}

func TestSelect(t *testing.T) {
	writable := Profile{Workspace: "/w", HostWrite: true, Write: []Grant{{Path: "/w", Dir: true, Rights: Read | Write}}}
	with := func(p Profile, change func(*Profile)) Profile { change(&p); return p }
	t2 := Host{OS: "linux", ABI: 7, Seccomp: true, NSWhy: "user namespaces are off", state: "/state", cgroup: noCgroup}
	t3 := Host{OS: "linux", ABI: 7, Seccomp: true, Namespaces: true, state: "/state", cgroup: noCgroup}
	with3 := func(h Host, overlay bool) Host { h.Overlay = overlay; return h }
	stateless := t2
	stateless.state = ""
	for _, tc := range []struct {
		name    string
		p       Profile
		h       Host
		tier    Tier
		gaps    string // in the receipt, or missing
		refused string // code
	}{
		{"plain read", Profile{PlainRead: true}, t2, T2, "", ""},
		{"unknown tool, nothing accepted", Profile{}, t2, T2, "files.hidden proc.hidden tree.killed", "E4101"},
		{"unknown tool, built-in", Profile{Accept: BuiltinAccept()}, t2, T2, "files.hidden proc.hidden tree.killed", ""},
		{"writes, built-in", with(writable, func(p *Profile) { p.Accept = BuiltinAccept() }), t2, T2,
			"files.meta files.hidden ws.protect proc.hidden tree.killed", ""},
		{"writes unchecked", with(writable, func(p *Profile) { p.Accept = BuiltinAccept() }), stateless, T2, "ws.check", "E4101"},
		{"required although plain", Profile{PlainRead: true, Need: []Guarantee{ProcHidden}}, t2, T2, "proc.hidden", "E4101"},
		{"old Landlock", Profile{PlainRead: true}, Host{ABI: 5, Seccomp: true}, T1, "proc.signal", "E4101"},
		{"old Landlock accepted", Profile{PlainRead: true, Accept: []Guarantee{ProcSignal}}, Host{ABI: 5, Seccomp: true}, T1, "proc.signal", ""},
		{"no Landlock", Profile{Accept: Guarantees()}, Host{Landlock: "none"}, T0, "", "E4106"},
		{"no filter", Profile{Accept: Guarantees()}, Host{ABI: 7}, T0, "", "E4106"},
		{"other system", Profile{Accept: Guarantees()}, Host{OS: "plan9"}, T0, "", "E4106"},
		{"unconfined", Profile{Confine: ConfineNone}, t2, T0, "", ""},
		{"forced above the host", Profile{Forced: T3, PlainRead: true}, t2, T3, "kernel", "E4101"},
		{"allowlist", Profile{PlainRead: true, Net: Net{Mode: NetAllowlist}}, t2, T2, "net", "E4101"},
		{"limit", Profile{PlainRead: true, Limits: Limits{Processes: 5}}, t2, T2, "", "E4006"},
		{"limit that T3 keeps", Profile{PlainRead: true, Limits: Limits{Processes: 5}}, t3, T3, "", ""},
		{"limit of root", Profile{PlainRead: true, Limits: Limits{Processes: 5}}, Host{ABI: 7, Seccomp: true, Namespaces: true, Root: true, cgroup: noCgroup}, T3, "", "E4006"},
		{"other limits", Profile{PlainRead: true, Limits: Limits{CPU: 5, FileSize: 1, Memory: 1}}, t2, T2, "", ""},
		{"accepted gaps are for lesser machines", Profile{Accept: BuiltinAccept()}, t3, T3, "", ""},
		{"plain read where T3 is usable", Profile{PlainRead: true}, t3, T2, "", ""},
		{"a cache under a layer takes T3", Profile{PlainRead: true, Layered: true}, with3(t3, true), T3, "", ""},
		{"a cache without a layer", Profile{PlainRead: true, Layered: true}, with3(t3, false), T2, "", ""},
		{"required gap takes T3", Profile{Accept: []Guarantee{FilesHidden}}, t3, T3, "", ""},
		{"required beats accepted", Profile{Need: []Guarantee{ProcHidden}, Accept: BuiltinAccept()}, t2, T2, "proc.hidden", "E4101"},
		{"required beats accepted, T3", Profile{Need: []Guarantee{ProcHidden}, Accept: BuiltinAccept()}, t3, T3, "", ""},
		{"forced", Profile{Forced: T3, PlainRead: true}, t3, T3, "", ""},
		{"allowlist takes T3", Profile{PlainRead: true, Net: Net{Mode: NetAllowlist}}, t3, T3, "", ""},
		{"allowlist of anybody takes T3", Profile{Accept: BuiltinAccept(), Net: Net{Mode: NetAllowlist}}, t3, T3, "", ""},
		{"allowlist at T2 forced", Profile{PlainRead: true, Forced: T2, Net: Net{Mode: NetAllowlist}}, t3, T2, "net", "E4101"},
		{"loopback", Profile{Accept: BuiltinAccept(), Net: Net{Mode: NetLoopback}}, t3, T3, "", ""},
		{"loopback without namespaces", Profile{Accept: BuiltinAccept(), Net: Net{Mode: NetLoopback}}, t2, T2, "files.hidden proc.hidden tree.killed", ""},
		{"full in place of a list", Profile{PlainRead: true, Net: Net{Mode: NetFull, Unbounded: []string{"h:443"}}}, t2, T2, "net", ""},
		{"full in place of a required list", Profile{PlainRead: true, Need: []Guarantee{NetGranted}, Net: Net{Mode: NetFull, Unbounded: []string{"h:443"}}}, t2, T2, "net", "E4101"},
		{"full", Profile{PlainRead: true, Need: []Guarantee{NetGranted}, Net: Net{Mode: NetFull}}, t2, T2, "", ""},
		{"limit accepted", Profile{PlainRead: true, Limits: Limits{Processes: 5}, Accept: []Guarantee{LimitsKept}}, t2, T2, "limits", ""},
	} {
		s, err := Select(tc.p, tc.h)
		var coded interface{ FaultCode() string }
		code := ""
		if errors.As(err, &coded) {
			code = coded.FaultCode()
		}
		if code != tc.refused || (err != nil) != (tc.refused != "") {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.refused)
			continue
		}
		var gap *GapError
		if errors.As(err, &gap) {
			if got := gapNames(gap.Gaps); got != tc.gaps {
				t.Errorf("%s: gaps %q, want %q", tc.name, got, tc.gaps)
			}
			continue
		}
		if err == nil && (s.Tier() != tc.tier || tc.tier != T0 && gapNames(s.gaps) != tc.gaps) {
			t.Errorf("%s: %s with gaps %q, want %s %q", tc.name, s.Tier(), gapNames(s.gaps), tc.tier, tc.gaps)
		}
	}
}

// TestSelectClaimsNoGap: a guarantee is given or a gap, never both.
func TestSelectClaimsNoGap(t *testing.T) {
	for abi := range 12 {
		for mode := NetNone; mode <= NetFull; mode++ {
			p := Profile{Accept: Guarantees(), HostWrite: abi%2 == 0, Net: Net{Mode: mode}, Workspace: "/w",
				Write: []Grant{{Path: "/w", Dir: true, Rights: Write}}}
			s, err := Select(p, Host{ABI: abi, Seccomp: true})
			if err != nil {
				continue
			}
			for _, g := range s.gaps {
				if slices.Contains(s.given, g.Guarantee) {
					t.Errorf("ABI %d: %s is given and a gap", abi, g.Guarantee)
				}
			}
			if len(s.given)+len(s.gaps) != len(Guarantees()) {
				t.Errorf("ABI %d: %d given, %d gaps", abi, len(s.given), len(s.gaps))
			}
		}
	}
}

// TestGapBlamesWhoChose: where the policy forces the lower tier, the receipt does not blame
// the machine.
func TestGapBlamesWhoChose(t *testing.T) {
	for _, tc := range []struct {
		forced Tier
		h      Host
		want   string
	}{
		{T2, Host{ABI: 7, Seccomp: true, Namespaces: true}, "the policy says tier T2"},
		{T0, Host{ABI: 7, Seccomp: true, NSWhy: "switched off"}, "switched off"},
	} {
		s, err := Select(Profile{Accept: BuiltinAccept(), Forced: tc.forced}, tc.h)
		if err != nil || len(s.gaps) == 0 || s.gaps[0].Why != tc.want {
			t.Errorf("%+v: %v, gaps %+v", tc.h, err, s.gaps)
		}
	}
}

func TestEnforceable(t *testing.T) {
	for _, tc := range []struct {
		h    Host
		want bool
	}{{Host{}, false}, {Host{ABI: 7}, false}, {Host{Seccomp: true}, false}, {Host{ABI: 1, Seccomp: true}, true}} {
		if got := Enforceable(tc.h); got.Files != tc.want || got.Net != tc.want {
			t.Errorf("%+v: %+v", tc.h, got)
		}
	}
}

func TestReceiptListsAreNeverNull(t *testing.T) {
	s, err := Select(Profile{Confine: ConfineNone}, Host{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(s.Receipt())
	if err != nil || strings.Contains(strings.Replace(string(data), `"outer":null`, "", 1), "null") {
		t.Errorf("%s %v", data, err)
	}
}
