package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/wildcard"
)

func TestParseRefuses(t *testing.T) {
	rule := func(s string) string { return `{"version":1,"rules":[` + s + `]}` }
	for _, row := range []struct{ name, text, at, says string }{
		{"not json", `{"version":1`, "", ""},
		{"trailing", `{"version":1} x`, "1:15", ""},
		{"unknown key", "{\"version\":1,\n \"ruls\":[]}", "2:2", `unknown key "ruls"`},
		{"duplicate key", `{"version":1,"version":1}`, "1:14", ""},
		{"signer without issuer", `{"version":1,"trust":{"allowedSigners":[{"type":"cosign","identity":"a@b"}]}}`, "1:41", "issuer is missing"},
		{"signer with an empty issuer", `{"version":1,"trust":{"allowedSigners":[{"type":"cosign","identity":"a@b","issuer":""}]}}`, "1:84", "must be a string that is not empty"},
		{"signer pattern", `{"version":1,"trust":{"allowedSigners":[{"type":"cosign","identityPattern":"sigstore-js","issuer":"i"}]}}`, "1:76", "must begin with https://host/"},
		{"signer key", `{"version":1,"trust":{"allowedSigners":[{"type":"cosign","identity":"a","issuer":"i","verified":true}]}}`, "1:86", `unknown key "verified"`},
		{"signer fingerprint", `{"version":1,"trust":{"allowedSigners":[{"type":"gpg","fingerprint":"8D7B8B2F","keyring":"a.asc"}]}}`, "1:69", "the whole of it"},
		{"builder", `{"version":1,"trust":{"builders":[{"level":4}]}}`, "1:44", "level must be a whole number from 0 to 3"},
		{"revoked signers", `{"version":1,"trust":{"revoked":{"signers":[{"notAfter":"2026-01-01T00:00:00Z"}]}}}`, "1:45", "needs an id"},
		{"distroTrust", `{"version":1,"trust":{"distroTrust":"always"}}`, "1:37", "distroTrust"},
		{"state age", `{"version":1,"trust":{"maxStateAge":"24h"}}`, "1:23", "registries.json"},
		{"delegable path", `{"version":1,"delegable":{"paths":["/a","b"]}}`, "1:41", "absolute"},
		{"analysis time", `{"version":1,"analysis":{"maxTime":"50ms"}}`, "1:26", "unknown key"},
		{"case variant", `{"version":1,"Version":1}`, "1:14", ""},
		{"no version", `{"rules":[]}`, "1:1", "version is missing"},
		{"version 2", `{"version":2}`, "1:12", "version"},
		{"default allow", `{"version":1,"default":"allow"}`, "1:24", "confirm or deny"},
		{"rules not a list", `{"version":1,"rules":{}}`, "1:22", "list"},
		{"no id", rule(`{"decision":"deny","when":{}}`), "1:23", `no "id"`},
		{"bad id", rule(`{"id":"A","decision":"deny","when":{}}`), "1:29", "rule id"},
		{"same id", rule(`{"id":"a","decision":"deny","when":{}},{"id":"a","decision":"deny","when":{}}`), "1:62", "twice"},
		{"no grants", rule(`{"id":"a","decision":"allow","when":{}}`), "1:23", `no "grants"`},
		{"star", rule(`{"id":"a","decision":"allow","when":{},"grants":["*"]}`), "1:72", "can be granted"},
		{"read granted", rule(`{"id":"a","decision":"allow","when":{},"grants":["read"]}`), "1:72", "can be granted"},
		{"grants on deny", rule(`{"id":"a","decision":"deny","when":{},"grants":[]}`), "1:61", "allow rules only"},
		{"floor on allow", rule(`{"id":"a","decision":"allow","when":{},"grants":[],"floor":"deny"}`), "1:74", "confirm and deny"},
		{"floor stricter", rule(`{"id":"a","decision":"confirm","when":{},"floor":"deny"}`), "1:72", "stricter"},
		{"builtin key", rule(`{"id":"a","decision":"allow","when":{},"grants":[],"switch":"loopback"}`), "1:74", "unknown key"},
		{"unknown condition", rule(`{"id":"a","decision":"deny","when":{"tol":"x"}}`), "1:59", "unknown key"},
		{"unknown effect", rule(`{"id":"a","decision":"deny","when":{"effects":{"explode":true}}}`), "1:70", "unknown effect"},
		{"harmless restriction", rule(`{"id":"a","decision":"deny","when":{"effects":{"network":false}}}`), "1:80", "harmless"},
		{"danger loosens", rule(`{"id":"a","decision":"allow","when":{"anyEffect":["write"]},"grants":[]}`), "1:60", "cannot loosen"},
		{"low rank loosens", rule(`{"id":"a","decision":"allow","when":{"rank":{"below":"org"}},"grants":[]}`), "1:68", "cannot loosen"},
		{"label loosens", rule(`{"id":"a","decision":"allow","when":{"agent":"x"},"grants":[]}`), "1:60", "label"},
		{"label as exception", rule(`{"id":"a","decision":"deny","when":{},"unless":[{"agent":"x"}]}`), "1:72", "label"},
		{"class", rule(`{"id":"a","decision":"deny","when":{"path":{"class":"home"}}}`), "1:75", "path class"},
		{"glob", rule(`{"id":"a","decision":"deny","when":{"path":{"glob":"src/*"}}}`), "1:74", "path pattern"},
		{"empty glob", rule(`{"id":"a","decision":"deny","when":{"path":{"glob":""}}}`), "1:74", "empty"},
		{"empty list", rule(`{"id":"a","decision":"deny","when":{"host":[]}}`), "1:66", "empty"},
		{"host", rule(`{"id":"a","decision":"deny","when":{"host":"*"}}`), "1:66", "not a host"},
		{"tool with space", rule(`{"id":"a","decision":"deny","when":{"tool":"gh pr"}}`), "1:66", "not a tool"},
		{"digest", rule(`{"id":"a","decision":"deny","when":{"tool":"sha256:AB"}}`), "1:66", "not a digest"},
		{"long reason", rule(`{"id":"a","decision":"deny","when":{},"reason":"` + strings.Repeat("x", 201) + `"}`), "1:70", "200"},
		{"switch", `{"version":1,"switches":{"everything":true}}`, "1:26", "unknown switch"},
		{"duration", `{"version":1,"limits":{"timeout":"5 min"}}`, "1:34", "duration"},
		{"size", `{"version":1,"limits":{"memory":"much"}}`, "1:33", "size"},
		{"sandbox key", `{"version":1,"sandbox":{"wirte":[]}}`, "1:25", "unknown key"},
		{"guarantee", `{"version":1,"sandbox":{"require":["files"]}}`, "1:35", "guarantee"},
		{"confine", `{"version":1,"sandbox":{"confine":"maybe"}}`, "1:35", "one of"},
		{"autoApprove", `{"autoApprove":{"effects.nice":true}}`, "1:17", "unknown effect"},
		{"autoApprove empty", `{"autoApprove":{}}`, "1:16", "everything"},
		{"private name", `{"network":{"private":["10.0.0.0/8","intranet"]}}`, "1:37", "address ranges"},
		{"private kind", `{"network":{"private":["loopback"]}}`, "1:24", "address ranges"},
		{"forward without a port", `{"network":{"forward":["127.0.0.1"]}}`, "1:24", "host:port"},
		{"forward below", `{"network":{"forward":["*.corp:5432"]}}`, "1:24", "host:port"},
		{"autoApprove string", `{"autoApprove":{"network":"no"}}`, "1:27", "true or false"},
		{"delegation key", `{"delegation":{"allowTools":[]}}`, "1:16", "unknown key"},
		{"policy key", `{"policy":{"exec":{}}}`, "1:12", "unknown key"},
		{"pins", `{"version":1,"trust":{"pins":{"x":["abc"]}}}`, "1:35", "digest"},
	} {
		_, err := Parse(Source{File: "p.json", Raw: []byte(row.text), Layer: LayerUser})
		var pe *ParseError
		if !errors.As(err, &pe) {
			t.Errorf("%s: %v, want a ParseError", row.name, err)
			continue
		}
		if pe.FaultCode() != "E2040" || row.at != "" && !strings.HasPrefix(pe.Error(), "p.json:"+row.at+": ") || !strings.Contains(pe.Msg, row.says) {
			t.Errorf("%s: %s %v, want at %s: %q", row.name, pe.FaultCode(), pe, row.at, row.says)
		}
	}
}

func TestParseTakes(t *testing.T) {
	for _, text := range []string{
		`{"autoApprove":{"effects.idempotent":true,"effects.network":false},"requireConfirmation":{"effects.destructive":true}}`,
		`{"delegation":{"allowedTools":["gh","git"],"deniedCommands":["gh repo delete"],"effectRestrictions":{"destructive":false}}}`,
		`{"policy":{"version":"1","organization":"Acme Corp","approval":{"mode":"allowlist","note":"n"},"trust":{"requireSignatures":true,"allowedSigners":["a@b"]},"execution":{"requireConfirmation":{"destructive":true},"auditAllCalls":true}}}`,
		`{"registry":{"name":"x"},"policy":{"organization":"Acme"}}`,
		"// comment\n{\"$schema\":\"x\",\"x-note\":{\"a\":1},/* c */\"version\":1}",
		`{"version":1,"rules":[]}`, `{}`,
		`{"version":1,"rules":[{"id":"a","decision":"deny","when":{},"match":[{"argv":["git","it's"],"rank":"org"}]}]}`,
	} {
		if _, err := Parse(Source{File: "p", Raw: []byte(text), Layer: LayerUser}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(manyRules(8)))
	f.Add([]byte(`{"autoApprove":{"effects.idempotent":true},"delegation":{"deniedCommands":["a b"]},"network":{"allow":["[::1]:5"]}}`))
	f.Add([]byte(`{"version":1,"rules":[{"id":"a","decision":"deny","when":{"path":{"glob":"/**/a"}}}],"sandbox":{"write":["/x"]},"limits":{"timeout":"1d2h"}}`))
	req := requestOf(tool("gh pr list", "network").on("write:workspace:/home/u/p/a"), unknown("x"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := Parse(Source{File: "f", Raw: raw, Layer: LayerFlag})
		if err != nil {
			var pe *ParseError
			if !errors.As(err, &pe) {
				t.Fatalf("error of type %T", err)
			}
			return
		}
		s, err := Compile([]*Document{d})
		if err != nil {
			return
		}
		// A flag's document never loosens.
		if got, was := s.Decide(req).Action, mustCompile(t).Decide(req).Action; got > was {
			t.Fatalf("%s: %v became %v", raw, was, got)
		}
	})
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"127.1", "0x7f000001", "[::ffff:10.0.0.1]", "2852039166", "docs.rs.", "a%00b", "64:ff9b::a9fe:a9fe", "..", "a]."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u := HostUseOf(s, 0)
		if again := HostUseOf(u.Host, 0); again != u {
			t.Fatalf("%q: %+v, then %+v", s, u, again)
		}
	})
}

func TestHosts(t *testing.T) {
	for host, want := range map[string]HostKind{
		"example.com": HostPublic, "8.8.8.8": HostPublic, "LOCALHOST.": HostLoopback, "x.localhost": HostLoopback,
		"127.0.0.1": HostLoopback, "127.1": HostLoopback, "0x7f.1": HostLoopback, "017700000001": HostLoopback, "2130706433": HostLoopback,
		"[::1]": HostLoopback, "::ffff:127.0.0.1": HostLoopback, "0.0.0.0": HostLoopback, "::": HostLoopback,
		"10.1.2.3": HostPrivate, "192.168.0.1": HostPrivate, "100.64.0.1": HostPrivate, "fe80::1%eth0": HostPrivate, "fd00::1": HostPrivate,
		"169.254.1.1": HostPrivate, "169.254.169.254": HostMetadata, "0xa9fea9fe": HostMetadata, "[::ffff:a9fe:a9fe]": HostMetadata,
		"64:ff9b::a9fe:a9fe": HostMetadata, "2002:a9fe:a9fe::": HostMetadata, "fd00:ec2::254": HostMetadata,
		"Metadata.Google.Internal": HostMetadata, "100.100.100.200": HostMetadata, "1.2.3.4.5": HostPublic, "256.1.1.1": HostPublic,
	} {
		if got := HostUseOf(host, 0).Kind; got != want {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
	}
	for _, row := range []struct {
		pattern, host string
		port          int
		match, listed bool
	}{
		{"docs.rs", "docs.rs", 443, true, true}, {"docs.rs", "docs.rs", 0, true, true}, {"docs.rs", "docs.rs", 80, true, false},
		{"docs.rs:80", "docs.rs", 80, true, true}, {"*.python.org", "pypi.python.org", 443, true, true}, {"*.python.org", "python.org", 443, false, false},
		{"*.python.org", "evilpython.org", 443, false, false}, {"10.0.0.0/8", "10.1.2.3", 443, true, true}, {"10.0.0.0/8", "11.1.2.3", 443, false, false},
		{"10.0.0.0/8", "0x0a010203", 443, true, true}, {"loopback", "127.1", 1, true, true}, {"loopback:2375", "localhost", 2375, true, true}, {"loopback:2375", "localhost", 2376, false, false},
		{"[::1]:80", "::1", 80, true, true}, {"169.254.169.254", "169.254.169.254", 443, true, false},
	} {
		p, ok := parseHostPattern(row.pattern)
		if !ok {
			t.Errorf("%s: refused", row.pattern)
			continue
		}
		u := HostUseOf(row.host, row.port)
		if p.match(u) != row.match || p.listed(u) != row.listed {
			t.Errorf("%s on %+v: match %v listed %v", row.pattern, u, p.match(u), p.listed(u))
		}
	}
}

func TestGlobs(t *testing.T) {
	for _, row := range []struct {
		p, s string
		want bool
	}{
		{"/a/*", "/a/b", true}, {"/a/*", "/a/b/c", false}, {"/a/**", "/a/b/c", true}, {"/a/**", "/a", true}, {"/a/**", "/ab", false},
		{"**/x", "/a/b/x", true}, {"**/x", "/x", true}, {"/a/**/c", "/a/c", true}, {"/a/**/c", "/a/b/b/c", true}, {"/a/**/c", "/a/b/d", false},
		{"/**/b/**/d", "/a/b/c/b/e/d", true}, {"/a?", "/ab", true}, {"/a?", "/a/", false}, {"/a*b*c", "/aXbXc", true}, {"/a*b*c", "/aXcXb", false}, {"/", "/", true}, {"/a", "", false},
	} {
		if got := pathGlob(row.p, row.s); got != row.want {
			t.Errorf("pathGlob(%q, %q) = %v", row.p, row.s, got)
		}
	}
	for _, row := range []struct {
		p, s string
		want bool
	}{{"prod*", "prod-eu", true}, {"*", "", true}, {"a*a", "a", false}, {"python3.*", "python3.12", true}, {"**", "x/y", true}} {
		if got := wildcard.Match(row.p, row.s); got != row.want {
			t.Errorf("globMatch(%q, %q) = %v", row.p, row.s, got)
		}
	}
}

func TestDangerKeys(t *testing.T) {
	for e := range atip.NumEffects {
		effect := atip.Effect(e)
		got, ok := dangerByKey(DangerName(effect))
		if ok != dangerKeys.Has(effect) || ok && got != effect {
			t.Errorf("%s: %v, %v", DangerName(effect), got, ok)
		}
	}
}
