package policy

import (
	"time"

	"github.com/atip-dev/atip-exec/atip"
)

// dangerKeys are the effects that need a grant. Reversible stands for
// irreversible; the other effects gate nothing unless a rule names them.
const dangerKeys = atip.Set(1<<atip.Write | 1<<atip.Delete | 1<<atip.Network | 1<<atip.Destructive |
	1<<atip.Reversible | 1<<atip.Billable | 1<<atip.SecretRead | 1<<atip.Privileged |
	1<<atip.Persistence | 1<<atip.RemoteMutation | 1<<atip.ExecOpaque)

// dangerByKey finds a danger key by its name in policies.
func dangerByKey(key string) (atip.Effect, bool) {
	if key == "irreversible" {
		return atip.Reversible, true
	}
	e, ok := atip.EffectByKey(key)
	if !ok || !dangerKeys.Has(e) || e == atip.Reversible {
		return 0, false
	}
	return e, true
}

// dangerName is the inverse of dangerByKey.
func dangerName(e atip.Effect) string {
	if e == atip.Reversible {
		return "irreversible"
	}
	return e.String()
}

// rule is one rule of any layer. A rule made from an ATIP form is an ordinary one.
type rule struct {
	id        string
	decision  Action
	when      when
	unless    []when
	grants    atip.Set
	floor     Action // restrictive: how far a lower layer may lift it
	lifts     []string
	onUnknown Action // a deny that is only maybe
	reason    string
	suggest   string
	expires   time.Time
	match     []example
	notMatch  []example

	// notDeclared: an allow rule does not cover these effects when the metadata
	// says yes, although it may grant them where they are merely unknown.
	notDeclared atip.Set

	// Of the built-in document only.
	sw            []string // the switches that must all be on for this allow rule
	unlessAllowed []string // built-in allow rules that cancel this row; "*" for any
	needsDigest   bool     // lifted only by a rule that names the executable's digest

	form      bool // made from an ATIP form, which may stand in a document twice
	layer     Layer
	file      string
	line, col int
}

// name is how a rule is shown: layer/id.
func (r *rule) name() string { return r.layer.String() + "/" + r.id }

// when is a condition; the zero value holds for every step. All that is set must hold.
type when struct {
	tool           []string
	toolNotIn      []string // delegation.allowedTools; nil means not set
	command        [][]string
	option         []optionCond
	effects        []effectCond
	anyEffect      atip.Set
	path           *pathCond
	host           []hostPattern
	level          []string
	reason         []string
	rankBelow      *atip.Rank
	rankAtLeast    *atip.Rank
	metadata       []string
	confidence     []Confidence
	edge           []EdgeKind
	unknownOptions *bool
	cwd            []string
	ci             *bool
	delegated      *bool
	agent          []string
	code           []CodeKind
	known          *bool
	confined       *bool
	trackedClean   *bool
	undo           *Undo
	declared       *bool
}

type optionCond struct {
	name  string // without dashes
	any   bool   // present, whatever its value
	value string // glob
}

type effectCond struct {
	effect atip.Effect
	value  bool
}

// pathCond is about paths. In a restrictive rule some path must satisfy it, in an
// allow rule every path that is written, deleted or executed.
type pathCond struct {
	class     classes
	glob      []string
	access    atip.Access // zero: any
	recursive bool        // the act reaches everything below
	in        string      // "workspace": below it
	notIn     string      // "workspace": not below it
	named     bool        // allow: at least one such path must be named in the call
}

// classes is a set of path classes; zero means any.
type classes uint32

func (m classes) has(c atip.Class) bool { return m&(1<<c) != 0 }

const workspaceClasses = classes(1<<atip.ClassWorkspace | 1<<atip.ClassWorkspaceTracked |
	1<<atip.ClassWorkspaceRegenerable | 1<<atip.ClassWorkspaceVCS)

// scratchClasses is where an allow rule that names no path may write.
const scratchClasses = workspaceClasses | 1<<atip.ClassTmp

// example is a command with which a rule is tested when its document is loaded.
type example struct {
	command   string
	argv      []string // if it is one
	cwd       string   // below or beside the imaginary workspace; "" for it
	effects   []statedEffect
	rank      *atip.Rank // of what is stated
	line, col int
}

// statedEffect is an effect that an example says its command has.
type statedEffect struct {
	effect atip.Effect
	value  atip.Value
}
