package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// The built-in policy is a document of the language: rendered and read back, every
// rule is the same.
func TestBuiltinIsADocument(t *testing.T) {
	d, err := Parse(Source{File: "builtin", Raw: []byte(BuiltinText()), Layer: LayerBuiltin})
	if err != nil {
		t.Fatalf("%v\n%s", err, BuiltinText())
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
	sum := sha256.Sum256([]byte(BuiltinText()))
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
