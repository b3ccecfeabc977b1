package shims

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/atip"
)

var (
	hexA = strings.Repeat("a1", 32)
	hexB = strings.Repeat("b2", 32)
)

// world is one set of agent-tools directories below a temporary directory.
type world struct {
	t *testing.T
	d Dirs
}

func newWorld(t *testing.T) world {
	top := t.TempDir()
	return world{t, Dirs{Config: top + "/config", Data: top + "/data", Managed: top + "/managed", DataDirs: []string{top + "/sys"}}}
}

func (w world) put(path, content string) string {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// fetched writes a document with the side file that fetching it would have left.
func (w world) fetched(path, content, expires string) {
	w.t.Helper()
	w.put(path, content)
	sum := sha256.Sum256([]byte(content))
	w.put(path+".meta", fmt.Sprintf(`{"v":1,"sha256":%q,"expires":%q}`, hex.EncodeToString(sum[:]), expires))
}

// doc is a document of a tool without commands.
func doc(name, source, hash string, destructive bool) string {
	s := `{"atip":"0.6","name":"` + name + `","version":"1","description":"A tool"`
	if source != "" {
		s += `,"trust":{"source":"` + source + `"}`
	}
	if hash != "" {
		s += `,"binary":{"hash":"sha256:` + hash + `","name":"` + name + `","version":"1"}`
	}
	return s + fmt.Sprintf(`,"effects":{"destructive":%v}}`, destructive)
}

func destructive(f Found, argv ...string) atip.Value {
	return f.Resolve(argv, atip.ResolveOptions{}).Effects[atip.Destructive].Value
}

func TestSources(t *testing.T) {
	future := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	past := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	override := func(dir string) string { return dir + "/overrides/sha256/" + hexA + ".json" }
	shim := func(dir string) string { return dir + "/shims/sha256/" + hexA + ".json" }
	native := func(w world) string { return w.d.Data + "/tools/sha256-" + hexA + ".json" }
	believed := Query{Digest: hexA, Effective: "mytool", Invoked: "mytool", Believed: true}
	for _, row := range []struct {
		name    string
		q       Query
		arrange func(world)
		channel string
		rank    atip.Rank
		code    string // of an error
		warns   bool
		check   func(*testing.T, Found)
	}{
		{name: "nothing", q: believed, channel: "none"},
		{name: "managed override first", q: believed, arrange: func(w world) {
			w.put(override(w.d.Managed), doc("mytool", "vendor", "", false))
			w.put(override(w.d.Config), doc("mytool", "", "", true))
		}, channel: "override", rank: atip.Vendor},
		{name: "managed override declares less", q: believed, arrange: func(w world) { w.put(override(w.d.Managed), doc("mytool", "community", "", false)) },
			channel: "override", rank: atip.Community},
		{name: "user override is at most org", q: believed, arrange: func(w world) { w.put(override(w.d.Config), doc("mytool", "vendor", "", false)) },
			channel: "override", rank: atip.Org},
		{name: "user override beats native and shim", q: believed, arrange: func(w world) {
			w.put(override(w.d.Config), doc("mytool", "", "", true))
			w.fetched(native(w), doc("mytool", "", "", false), future)
			w.fetched(shim(w.d.Data), doc("mytool", "", hexA, false), future)
		}, channel: "override", rank: atip.Org, check: func(t *testing.T, f Found) {
			if destructive(f, "mytool") != atip.Yes {
				t.Error("the override did not decide")
			}
		}},
		{name: "comments in an override", q: believed, arrange: func(w world) {
			w.put(override(w.d.Config), "// why\n"+doc("mytool", "", "", false))
		}, channel: "override", rank: atip.Org},
		{name: "broken user override", q: believed, arrange: func(w world) { w.put(override(w.d.Config), "{\n \"atip\":}") }, code: "E1101"},
		{name: "broken managed override", q: believed, arrange: func(w world) { w.put(override(w.d.Managed), `{}`) }, code: "E1104"},
		{name: "override for another file", q: believed, arrange: func(w world) { w.put(override(w.d.Config), doc("mytool", "", hexB, false)) }, code: "E1105"},
		{name: "native of a believed file", q: believed, arrange: func(w world) { w.fetched(native(w), doc("mytool", "native", "", false), future) },
			channel: "native", rank: atip.Org},
		{name: "native of a verified file", q: Query{Digest: hexA, Effective: "mytool", Verified: true}, arrange: func(w world) { w.fetched(native(w), doc("mytool", "", "", false), future) },
			channel: "native", rank: atip.Vendor},
		{name: "native of an unknown file", q: Query{Digest: hexA, Effective: "mytool"}, arrange: func(w world) { w.fetched(native(w), doc("mytool", "", "", false), future) },
			channel: "native", rank: atip.User},
		{name: "native by name and hash", q: believed, arrange: func(w world) { w.fetched(w.d.Data+"/tools/mytool-"+hexA+".json", doc("mytool", "", "", false), future) },
			channel: "native", rank: atip.Org},
		{name: "stale native", q: believed, arrange: func(w world) { w.fetched(native(w), doc("mytool", "", "", false), past) },
			channel: "native", rank: atip.Org, check: func(t *testing.T, f Found) {
				if !f.Provenance.Stale {
					t.Error("not marked stale")
				}
			}},
		{name: "native without side file is the user's", q: believed, arrange: func(w world) { w.put(native(w), doc("mytool", "", "", false)) },
			channel: "user", rank: atip.User},
		{name: "native with another sum is the user's", q: believed, arrange: func(w world) {
			w.fetched(native(w), doc("mytool", "", "", true), future)
			w.put(native(w), doc("mytool", "", "", false))
		}, channel: "user", rank: atip.User},
		{name: "planted native only raises a builtin", q: Query{Digest: hexA, Effective: "cat", Believed: true}, arrange: func(w world) { w.put(native(w), doc("cat", "", "", true)) },
			channel: "builtin", rank: atip.Org, check: func(t *testing.T, f Found) {
				if destructive(f, "cat", "x") != atip.Yes || len(f.Lost) != 1 {
					t.Error("its yes did not join in", f.Lost)
				}
			}},
		{name: "broken native that was probed", q: Query{Digest: hexA, Effective: "cat", Believed: true}, arrange: func(w world) { w.fetched(native(w), `{"atip":`, future) },
			channel: "none", warns: true, check: func(t *testing.T, f Found) {
				if f.Document != nil || destructive(f, "cat", "x") != atip.Unknown {
					t.Error("a lower source was asked")
				}
			}},
		{name: "broken native that was planted", q: believed, arrange: func(w world) { w.put(native(w), `{"atip":`) }, code: "E1101"},
		{name: "shim by hash", q: believed, arrange: func(w world) { w.put(shim(w.d.Data), doc("mytool", "vendor", hexA, false)) },
			channel: "shim", rank: atip.User},
		{name: "shim of the system", q: believed, arrange: func(w world) { w.put(shim(w.d.DataDirs[0]), doc("mytool", "vendor", hexA, false)) },
			channel: "shim", rank: systemRank()},
		{name: "shim for another file", q: Query{Digest: hexA, Effective: "cat"}, arrange: func(w world) { w.put(shim(w.d.Data), doc("cat", "", hexB, false)) }, code: "E1105"},
		{name: "shim that names no file", q: believed, arrange: func(w world) { w.put(shim(w.d.Data), doc("mytool", "", "", false)) }, code: "E1105"},
		{name: "broken shim that was fetched", q: Query{Digest: hexA, Effective: "cat"}, arrange: func(w world) { w.fetched(shim(w.d.Data), doc("cat", "", hexB, false), future) },
			channel: "none", warns: true},
		{name: "shim beats builtin", q: Query{Digest: hexA, Effective: "cat", Believed: true}, arrange: func(w world) { w.put(shim(w.d.Data), doc("cat", "", hexA, true)) },
			channel: "shim", rank: atip.User, check: func(t *testing.T, f Found) {
				if len(f.Lost) != 1 || f.Lost[0].Source != "builtin:cat" {
					t.Error("what lost is not said:", f.Lost)
				}
			}},
		{name: "builtin, believed", q: Query{Digest: hexA, Effective: "cat", Believed: true}, channel: "builtin", rank: atip.Org},
		{name: "builtin, not believed", q: Query{Digest: hexA, Effective: "cat"}, channel: "builtin", rank: atip.User},
		{name: "user by name", q: believed, arrange: func(w world) { w.put(w.d.Data+"/shims/mytool.json", "// mine\n"+doc("mytool", "", "", true)) },
			channel: "user", rank: atip.User, check: func(t *testing.T, f Found) {
				if destructive(f, "mytool") != atip.Yes {
					t.Error("its yes is lost")
				}
			}},
		{name: "user by name raises a builtin", q: Query{Digest: hexA, Effective: "cat", Believed: true}, arrange: func(w world) { w.put(w.d.Data+"/shims/cat.json", doc("cat", "", "", true)) },
			channel: "builtin", rank: atip.Org, check: func(t *testing.T, f Found) {
				if destructive(f, "cat", "x") != atip.Yes {
					t.Error("its yes did not join in")
				}
			}},
		{name: "user by name never lowers a builtin", q: Query{Digest: hexA, Effective: "rm", Believed: true}, arrange: func(w world) { w.put(w.d.Data+"/shims/rm.json", doc("rm", "org", "", false)) },
			channel: "builtin", rank: atip.Org, check: func(t *testing.T, f Found) {
				if destructive(f, "rm", "x") != atip.Yes {
					t.Error("rm was made harmless")
				}
			}},
		{name: "user by name for another file", q: believed, arrange: func(w world) { w.put(w.d.Data+"/shims/mytool.json", doc("mytool", "", hexB, true)) }, channel: "none"},
		{name: "user by name for this file", q: believed, arrange: func(w world) { w.put(w.d.Data+"/shims/mytool.json", doc("mytool", "", hexA, true)) }, channel: "user", rank: atip.User},
		{name: "tools by name", q: believed, arrange: func(w world) { w.put(w.d.Data+"/tools/mytool.json", doc("mytool", "", "", true)) }, channel: "user", rank: atip.User},
		{name: "broken user by name over a builtin", q: Query{Digest: hexA, Effective: "cat"}, arrange: func(w world) { w.put(w.d.Data+"/shims/cat.json", `[]`) }, code: "E1103"},
		{name: "broken tools by name", q: believed, arrange: func(w world) { w.put(w.d.Data+"/tools/mytool.json", "// no\n{}") }, code: "E1101"},
		{name: "inferred stays inferred", q: believed, arrange: func(w world) { w.put(override(w.d.Managed), doc("mytool", "inferred", "", false)) },
			channel: "inferred", rank: atip.Inferred},
		{name: "inferred for the hash is behind the builtin", q: Query{Digest: hexA, Effective: "cat", Believed: true}, arrange: func(w world) {
			w.put(override(w.d.Config), doc("cat", "inferred", "", true))
			w.put(shim(w.d.Data), doc("cat", "inferred", hexA, true))
		}, channel: "builtin", rank: atip.Org, check: func(t *testing.T, f Found) {
			if destructive(f, "cat", "x") == atip.Yes || len(f.Lost) != 1 || f.Lost[0].Channel != "inferred" {
				t.Errorf("%+v", f.Lost)
			}
		}},
		{name: "inferred for the hash of an unknown tool", q: believed, arrange: func(w world) { w.put(shim(w.d.Data), doc("mytool", "inferred", hexA, true)) },
			channel: "inferred", rank: atip.Inferred, check: func(t *testing.T, f Found) {
				if destructive(f, "mytool", "x") != atip.Yes {
					t.Error("what it knows of danger is lost")
				}
			}},
		{name: "version manager's shim", q: Query{Digest: hexA, Effective: "cat", NameOnly: true, Believed: true}, arrange: func(w world) {
			w.put(override(w.d.Config), doc("other", "", "", true))
			w.put(shim(w.d.Data), `broken`)
		}, channel: "builtin", rank: atip.Org},
		{name: "unreadable file has no digest", q: Query{Effective: "cat", Believed: true}, channel: "builtin", rank: atip.Org},
		{name: "a digest is not a path", q: Query{Digest: "../../" + hexA[6:], Effective: "cat", Believed: true}, channel: "builtin", rank: atip.Org},
		{name: "a name is not a path", q: Query{Effective: "../overrides/x", Believed: true}, arrange: func(w world) { w.put(w.d.Data+"/overrides/x.json", `broken`) }, channel: "none"},
		{name: "borrowed name", q: Query{Digest: hexA, Effective: "cat-9.1", Borrow: "cat", Believed: true}, channel: "builtin", rank: atip.Org},
		{name: "applet of a multi-call program", q: Query{Digest: hexA, Effective: "busybox", Invoked: "rm", Believed: true}, channel: "builtin", rank: atip.Org,
			check: func(t *testing.T, f Found) {
				if destructive(f, "rm", "x") != atip.Yes || f.Provenance.Source != "builtin:rm" {
					t.Error("rm of busybox is not rm", f.Provenance.Source)
				}
			}},
		{name: "pkill is a link to pgrep", q: Query{Digest: hexA, Effective: "pgrep", Invoked: "pkill", Believed: true}, channel: "builtin", rank: atip.Org,
			check: func(t *testing.T, f Found) {
				if destructive(f, "pkill", "x") != atip.Yes {
					t.Error("pkill only looks")
				}
			}},
		{name: "pgrep under a foreign name", q: Query{Digest: hexA, Effective: "pgrep", Invoked: "look", Believed: true}, channel: "builtin", rank: atip.Org,
			check: func(t *testing.T, f Found) {
				if destructive(f, "look", "x") != atip.Yes || destructive(f, "pgrep", "x") != atip.No {
					t.Error("a foreign name may be pkill")
				}
			}},
		{name: "zcat is not a name of xz", q: Query{Digest: hexA, Effective: "xz", Invoked: "zcat", Believed: true}, channel: "builtin", rank: atip.Org,
			check: func(t *testing.T, f Found) {
				if destructive(f, "zcat", "x") != atip.Yes {
					t.Error("a link called zcat made xz harmless")
				}
			}},
		{name: "sh is dash", q: Query{Digest: hexA, Effective: "dash", Invoked: "sh", Believed: true}, channel: "builtin", rank: atip.Org,
			check: func(t *testing.T, f Found) {
				if c := f.Resolve([]string{"sh", "-c", "exit 7"}, atip.ResolveOptions{}); c.Exactness != atip.Exact || len(c.Nested) != 1 {
					t.Errorf("%+v", c)
				}
			}},
		{name: "link with a harmless name", q: Query{Digest: hexA, Effective: "rm", Invoked: "ls", Believed: true}, channel: "builtin", rank: atip.Org,
			check: func(t *testing.T, f Found) {
				if destructive(f, "./ls", "x") != atip.Yes {
					t.Error("a link called ls made rm harmless")
				}
			}},
		{name: "reboot is not systemctl", q: Query{Digest: hexA, Effective: "systemctl", Invoked: "reboot", Believed: true}, channel: "builtin", rank: atip.Org,
			check: func(t *testing.T, f Found) {
				if destructive(f, "reboot") != atip.Yes {
					t.Error("reboot is read-only")
				}
			}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			if row.arrange != nil {
				row.arrange(w)
			}
			f, err := Lookup(row.q, w.d)
			if row.code != "" {
				var e *Error
				if !errors.As(err, &e) || e.Code != row.code || e.FaultCode() != row.code || e.FaultDetails()["file"] == nil {
					t.Fatalf("error %v (%+v), want %s", err, e, row.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.Provenance.Channel != row.channel || f.Provenance.Rank != row.rank {
				t.Errorf("%s of rank %s, want %s of rank %s", f.Provenance.Channel, f.Provenance.Rank, row.channel, row.rank)
			}
			if (len(f.Warnings) > 0) != row.warns {
				t.Errorf("warnings %q", f.Warnings)
			}
			if row.check != nil {
				row.check(t, f)
			}
		})
	}
}

// systemRank is the rank of a shim in a directory of the system: only if nobody
// but root could have put it there does it speak for the administrator.
func systemRank() atip.Rank {
	if os.Geteuid() == 0 {
		return atip.Org
	}
	return atip.User
}

func TestErrorHasAPosition(t *testing.T) {
	w := newWorld(t)
	file := w.put(w.d.Data+"/shims/mytool.json", "{\"atip\":\"0.6\",\n\"name\":\"mytool\",\n\"name\":\"x\"}")
	_, err := Lookup(Query{Effective: "mytool"}, w.d)
	var e *Error
	if !errors.As(err, &e) || e.File != file || e.Line != 3 || e.Col == 0 {
		t.Fatalf("%+v", e)
	}
	if d := e.FaultDetails(); d["line"] != 3 || d["file"] != file {
		t.Error(d)
	}
}

// What the caller supplies is never more than the user's word.
func TestCallerSupplied(t *testing.T) {
	w := newWorld(t)
	w.d.CallerSupplied = true
	future := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	w.fetched(w.d.Data+"/tools/sha256-"+hexA+".json", doc("mytool", "vendor", "", false), future)
	f, err := Lookup(Query{Digest: hexA, Effective: "mytool", Verified: true, Believed: true}, w.d)
	if err != nil || f.Provenance.Rank != atip.User {
		t.Errorf("rank %s, %v", f.Provenance.Rank, err)
	}
}

func TestNoDirectories(t *testing.T) {
	f, err := Lookup(Query{Digest: hexA, Effective: "mytool"}, Dirs{})
	if err != nil || f.Document != nil || f.Provenance.Channel != "none" {
		t.Errorf("%+v, %v", f, err)
	}
	if c := f.Resolve([]string{"mytool", "x"}, atip.ResolveOptions{}); c.Effects[atip.Network].Value != atip.Unknown || c.Tool != "mytool" {
		t.Errorf("%+v", c)
	}
}

func TestList(t *testing.T) {
	w := newWorld(t)
	w.put(w.d.Config+"/overrides/sha256/"+hexA+".json", doc("one", "", "", false))
	w.put(w.d.Data+"/shims/two.json", doc("two", "", "", false))
	w.put(w.d.Data+"/shims/sha256/"+hexB+".json", `broken`)
	all, err := List(w.d)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]Entry{}
	for _, e := range all {
		seen[e.Channel+":"+e.Name] = e
	}
	if e := seen["override:one"]; e.Hash != hexA || e.Rank != atip.Org || e.Version != "1" {
		t.Errorf("%+v", e)
	}
	if e := seen["user:two"]; e.Binding != "name" || e.Rank != atip.User {
		t.Errorf("%+v", e)
	}
	if e := seen["shim:"+hexB]; e.Problem == "" {
		t.Errorf("%+v", e)
	}
	if e := seen["builtin:rm"]; e.Description == "" || e.Rank != atip.Org {
		t.Errorf("%+v", e)
	}
}
