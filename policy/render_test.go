package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

var update = flag.Bool("update", false, "write builtin.json as the tables are")

// The built-in policy is a document of the language: builtin.json is the tables, and read back
// every rule is the same.
func TestBuiltinIsADocument(t *testing.T) {
	text := render()
	if *update {
		if err := os.WriteFile("builtin.json", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != BuiltinText {
		t.Error("builtin.json is not what the tables say: go test ./policy -run TestBuiltinIsADocument -update")
	}
	d, err := Parse(Source{File: "builtin", Raw: []byte(text), Layer: LayerBuiltin})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var want []rule
	for _, table := range [][]rule{builtinAllow[:], builtinConfirm[:], builtinDeny[:]} {
		want = append(want, table...)
	}
	if len(d.rules) != len(want) {
		t.Fatalf("%d rules, want %d", len(d.rules), len(want))
	}
	for i, got := range d.rules {
		w := want[i]
		got.file, got.line, got.col = w.file, w.line, w.col
		// What neither kind of rule reads is not rendered.
		if w.decision == Allow {
			got.floor, got.onUnknown = w.floor, w.onUnknown
		} else if w.decision == Confirm {
			got.onUnknown = w.onUnknown
		}
		forget(&got)
		forget(&w)
		if !reflect.DeepEqual(got, w) {
			t.Errorf("%s reads back as\n%s\nwant\n%s", w.id, show(got), show(w))
		}
	}
}

func show(r rule) string { return fmt.Sprintf("%+v path %+v", r, r.when.path) }

// forget drops the text of host patterns, which is for messages only.
func forget(r *rule) {
	drop := func(w when) when {
		w.host = append([]hostPattern(nil), w.host...)
		for i := range w.host {
			w.host[i].text = ""
		}
		return w
	}
	r.when = drop(r.when)
	unless := r.unless
	r.unless = nil
	for _, u := range unless {
		r.unless = append(r.unless, drop(u))
	}
}

func TestBuiltinDigest(t *testing.T) {
	sum := sha256.Sum256([]byte(BuiltinText))
	if got := hex.EncodeToString(sum[:]); got != builtinDigest {
		t.Errorf("the built-in policy changed: builtinDigest is now %s", got)
	}
}

func TestBuiltinRulesAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, table := range [][]rule{builtinAllow[:], builtinConfirm[:], builtinDeny[:]} {
		for i := range table {
			r := &table[i]
			if seen[r.id] || !validID(r.id) || r.reason == "" || r.layer != LayerBuiltin {
				t.Errorf("rule %q", r.id)
			}
			seen[r.id] = true
			for _, sw := range r.sw {
				if !isSwitch(sw) {
					t.Errorf("%s: unknown switch %s", r.id, sw)
				}
			}
		}
	}
	for i := range switchTable {
		used := false
		for k := range builtinAllow {
			used = used || slices.Contains(builtinAllow[k].sw, switchTable[i].name)
		}
		if !used && switchTable[i].name != "defer" { // what the gate decides (Set.Defers)
			t.Errorf("switch %s turns nothing on", switchTable[i].name)
		}
	}
}

// render is the text of the tables, in the language people write. It uses a few keys that only the
// built-in layer may: "switch" (an allow row that is on with these switches), "unlessAllowed" (a confirm
// row that is cancelled by built-in allow rows, "*" for any) and "needsDigest" (only
// a rule that names the executable's digest lifts it).
func render() string {
	w := &writer{b: []byte("{\n  \"version\": 1,\n  \"profile\": \"" + shippedProfiles[0] + "\",\n  \"default\": \"confirm\",\n  \"rules\": [\n")}
	first := true
	for _, table := range [...][]rule{builtinAllow[:], builtinConfirm[:], builtinDeny[:]} {
		for i := range table {
			if !first {
				w.raw(",\n")
			}
			first = false
			w.raw("    ")
			w.rule(&table[i])
		}
	}
	w.raw("\n  ]\n}\n")
	return string(w.b)
}

// writer writes JSON members one after the other.
type writer struct {
	b    []byte
	some bool // the open object has a member already
}

func (w *writer) raw(s string) { w.b = append(w.b, s...) }

func (w *writer) key(k string) {
	if w.some {
		w.raw(", ")
	}
	w.some = true
	w.b = append(appendString(w.b, k), ':', ' ')
}

func (w *writer) object(body func()) {
	some := w.some
	w.some = false
	w.raw("{")
	body()
	w.raw("}")
	w.some = some
}

func (w *writer) text(k, v string) {
	if v != "" {
		w.key(k)
		w.b = appendString(w.b, v)
	}
}

func (w *writer) flag(k string, v *bool) {
	if v != nil {
		w.key(k)
		if *v {
			w.raw("true")
		} else {
			w.raw("false")
		}
	}
}

func (w *writer) list(k string, v []string) {
	if v == nil {
		return
	}
	w.key(k)
	w.raw("[")
	for i, s := range v {
		if i > 0 {
			w.raw(", ")
		}
		w.b = appendString(w.b, s)
	}
	w.raw("]")
}

func (w *writer) rule(r *rule) {
	w.object(func() {
		w.text("id", r.id)
		w.text("decision", r.decision.String())
		w.list("switch", r.sw)
		w.key("when")
		w.when(&r.when)
		if len(r.unless) > 0 {
			w.key("unless")
			w.raw("[")
			for i := range r.unless {
				if i > 0 {
					w.raw(", ")
				}
				w.when(&r.unless[i])
			}
			w.raw("]")
		}
		if r.decision == Allow {
			w.list("grants", setList(r.grants))
			if r.notDeclared != 0 {
				w.list("notDeclared", setList(r.notDeclared))
			}
		} else if r.floor != r.decision {
			w.text("floor", r.floor.String())
		}
		if r.decision == Deny && r.onUnknown == Deny {
			w.text("onUnknown", "deny")
		}
		w.list("unlessAllowed", r.unlessAllowed)
		if r.needsDigest {
			w.flag("needsDigest", &r.needsDigest)
		}
		w.text("reason", r.reason)
	})
}

func (w *writer) when(c *when) {
	w.object(func() {
		w.list("tool", c.tool)
		if c.command != nil {
			var words []string
			for _, path := range c.command {
				line := ""
				for i, p := range path {
					if i > 0 {
						line += " "
					}
					line += p
				}
				words = append(words, line)
			}
			w.list("command", words)
		}
		if c.effects != nil {
			w.key("effects")
			w.object(func() {
				for i := range c.effects {
					w.flag(c.effects[i].effect.String(), &c.effects[i].value)
				}
			})
		}
		if c.anyEffect != 0 {
			w.list("anyEffect", setList(c.anyEffect))
		}
		if c.path != nil {
			w.key("path")
			w.path(c.path)
		}
		if c.host != nil {
			w.list("host", hostList(c.host))
		}
		w.list("metadata", c.metadata)
		if c.confidence != nil {
			w.list("confidence", names(c.confidence))
		}
		if c.edge != nil {
			w.list("edge", names(c.edge))
		}
		if c.code != nil {
			w.list("code", names(c.code))
		}
		w.flag("known", c.known)
		w.flag("confined", c.confined)
		w.flag("trackedClean", c.trackedClean)
		w.flag("declared", c.declared)
		if c.undo != nil {
			w.text("undo", c.undo.String())
		}
	})
}

func (w *writer) path(p *pathCond) {
	w.object(func() {
		if p.class != 0 {
			var list []string
			m := p.class
			if m&workspaceClasses == workspaceClasses {
				list, m = []string{"workspace*"}, m&^workspaceClasses
			}
			for c := atip.ClassUnknown; c <= atip.ClassOutside; c++ {
				if m.has(c) {
					list = append(list, c.String())
				}
			}
			w.list("class", list)
		}
		if p.access != 0 {
			var list []string
			for b := atip.AccessRead; b <= atip.AccessSecret; b <<= 1 {
				if p.access&b != 0 {
					list = append(list, b.String())
				}
			}
			w.list("access", list)
		}
		if p.recursive {
			w.flag("recursive", &p.recursive)
		}
		w.text("in", p.in)
		w.text("notIn", p.notIn)
		if p.named {
			w.flag("named", &p.named)
		}
	})
}

func hostList(hosts []hostPattern) []string {
	out := make([]string, 0, len(hosts))
	for _, h := range hosts {
		s := h.kind.String()
		if h.port != 0 {
			s = position(s, h.port, 0)
			s = s[:len(s)-2]
		}
		out = append(out, s)
	}
	return out
}

func names[T interface{ String() string }](list []T) []string {
	out := make([]string, 0, len(list))
	for _, x := range list {
		out = append(out, x.String())
	}
	return out
}

func setList(s atip.Set) []string {
	out := []string{}
	for e := range atip.NumEffects {
		if s.Has(atip.Effect(e)) {
			out = append(out, DangerName(atip.Effect(e)))
		}
	}
	return out
}
