package policy

import (
	"path"
	"time"

	"github.com/atip-dev/atip-exec/atip"
)

// Undo says how far what a step does to the workspace can be taken back. The zero value is
// not at all.
type Undo uint8

// Degrees of undo in ascending order.
const (
	UndoNo Undo = iota
	UndoPartly
	UndoYes
)

// String returns the name used in policy documents.
func (u Undo) String() string { return [...]string{"no", "partly", "yes"}[min(u, UndoYes)] }

// MarshalText implements encoding.TextMarshaler.
func (u Undo) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// undoCond reads the condition. A worse call is one that can be taken back less, so a rule that
// loosens names what must be there at least, and one that restricts what is there at most.
func (r *reader) undoCond(v *atip.Node, proven bool) *Undo {
	u := map[string]Undo{"no": UndoNo, "partly": UndoPartly, "yes": UndoYes}[r.oneOf(v, "yes", "partly", "no")]
	if proven && u == UndoNo {
		r.fail(v, `undo "no" cannot loosen: use "yes"`)
	}
	if !proven && u == UndoYes {
		r.fail(v, `undo "yes" cannot restrict, as what cannot be undone would escape: use "no" or "partly"`)
	}
	return &u
}

func undoIs(want, have Undo, proven bool) bool {
	if proven {
		return have >= want
	}
	return have <= want
}

// UndoPolicy is the merged undo object; zero means that nothing was said.
type UndoPolicy struct {
	Mode     string // "", "auto", "always", "off"
	MaxBytes int64  // of the copies of one workspace
	MaxAge   time.Duration
	Exclude  []string // patterns of names that are not copied
}

type undoDoc struct {
	UndoPolicy
	set, excludeSet bool
}

func (r *reader) undo(v *atip.Node) undoDoc {
	u := undoDoc{set: true}
	r.object(v, "undo", func(key string, e *atip.Node) bool {
		switch key {
		case "mode":
			u.Mode = r.oneOf(e, "auto", "always", "off")
		case "maxBytes":
			u.MaxBytes = r.integer(e, 1<<20, 1<<40)
		case "maxAge":
			u.MaxAge = r.duration(e)
		case "exclude":
			u.Exclude, u.excludeSet = r.strings(e), true
			for i, p := range u.Exclude {
				if _, err := path.Match(p, ""); err != nil || p == "" || path.IsAbs(p) {
					r.fail(e.Items[i], "%q is not a pattern of a name or of a path in the workspace", p)
				}
			}
		default:
			return false
		}
		return true
	})
	return u
}

// Undo returns the merged undo object. A lower layer may only keep more: what an upper one
// says is a floor, and what is left out is what all leave out.
func (s *Set) Undo() UndoPolicy {
	var p UndoPolicy
	rank := map[string]int{"off": 1, "auto": 2, "always": 3}
	excluded := false
	for _, d := range s.docs {
		x := &d.undo
		if !x.set {
			continue
		}
		mayLess := owner(d)
		if x.Mode != "" && (p.Mode == "" && (mayLess || x.Mode == "always") || p.Mode != "" && rank[x.Mode] > rank[p.Mode]) {
			p.Mode = x.Mode
		}
		if p.MaxBytes == 0 && mayLess || x.MaxBytes > p.MaxBytes && p.MaxBytes != 0 {
			p.MaxBytes = x.MaxBytes
		}
		if p.MaxAge == 0 && mayLess || x.MaxAge > p.MaxAge && p.MaxAge != 0 {
			p.MaxAge = x.MaxAge
		}
		switch {
		case !x.excludeSet:
		case !excluded && mayLess:
			p.Exclude, excluded = x.Exclude, true
		case excluded:
			p.Exclude = intersect(p.Exclude, x.Exclude)
		}
	}
	return p
}

// AsksUndo reports whether a rule of a document depends on what can be taken back; the
// built-in ones do, as far as their switch is on.
func (s *Set) AsksUndo() bool {
	asks := func(r *rule) bool {
		for _, w := range append([]when{r.when}, r.unless...) {
			if w.undo != nil && r.layer != LayerBuiltin {
				return true
			}
		}
		return false
	}
	for _, list := range [...][]*rule{s.restrict, s.allow} {
		for _, r := range list {
			if asks(r) {
				return true
			}
		}
	}
	return false
}
