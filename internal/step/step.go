// Package step holds one command of a run with everything known about it, and reads what its own
// words, options, variables and texts say. It looks at no file.
package step

import (
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/trust"
)

// Step is one command of the run with everything that was found out about it.
type Step struct {
	policy.Step
	Argv       []string
	Executable *trust.File // nil for a command that is not installed
	ID         trust.Identity
	Verdict    trust.Verdict
	Missing    error
	// DocumentVerdict is the verdict on the document about it; without a reason there is none, or
	// it is one of our own.
	DocumentVerdict trust.Verdict

	Known  *Step // without the words that are not known, nil if all are
	AtExec bool  // its unknown words are decided when it starts

	Split *atip.Fetch // how it is split into fetching and running without network, nil if it is not
	Apart *Step       // the second part, nil without the first

	Quieted     string   // a setting of its repository that runs a program, unless the run turns it off
	TargetFiles []string // files that name what it runs, such as a Makefile
	Primes      *Primes  // what its tool says of prime, nil if it says nothing
}

// Primes is what a document says of the prime of its tool.
type Primes struct {
	Metadata bool // it takes --metadata
}

// TrustFacts are the parts of a verdict that policies may name.
func TrustFacts(v trust.Verdict) policy.TrustFacts {
	return policy.TrustFacts{Level: v.Level.String(), Reason: v.Reason, Action: policy.Action(v.Action)}
}

// Rustup reports the names under which the programs of a Rust toolchain take another
// toolchain in front: "cargo +nightly fmt". One that is missing is not fetched without a network.
func Rustup(name string) bool {
	switch name {
	case "cargo", "rustc", "rustfmt", "rustdoc", "rustup", "clippy-driver":
		return true
	}
	return false
}

// Raise adds the effects that follow from what a path is: metadata knows the
// option, not where the file lies.
func (s *Step) Raise(r atip.Resource) {
	fact := atip.Fact{Value: atip.Yes, Source: "path " + r.Abs, Rank: atip.Vendor}
	if r.Class == atip.ClassSecret && r.Access&(atip.AccessRead|atip.AccessSecret|atip.AccessExec) != 0 {
		s.Call.Effects[atip.SecretRead] = fact
	}
	if (r.Class == atip.ClassStartup || strings.HasPrefix(filepath.Base(r.Abs), "authorized_keys")) && r.Access&atip.AccessWrite != 0 {
		s.Call.Effects[atip.Persistence] = fact
	}
	if r.Class == atip.ClassDevice && r.Access&atip.AccessWrite != 0 {
		s.Call.Effects[atip.Destructive] = fact
	}
}

// Believed reports whether the bytes of a tool are vouched for by something else
// than a signature: trust.Decide names these reasons.
func Believed(v trust.Verdict) bool {
	if v.Level == trust.Verified {
		return true
	}
	switch v.Reason {
	case "pinned", "known_digest", "distro_db_match", "system_path", "own_path":
		return v.Action == trust.Allow
	}
	return false
}

// Value is an effect under its danger name: irreversible is the opposite of
// reversible.
func (s *Step) Value(e atip.Effect) atip.Value {
	v := s.Call.Effects[e].Value
	if e == atip.Reversible {
		switch v {
		case atip.Yes:
			return atip.No
		case atip.No:
			return atip.Yes
		}
		return v
	}
	if v == atip.No && (s.RunsCode != policy.CodeNone || s.Call.Effects[atip.ExecOpaque].Value == atip.Yes) {
		switch e {
		case atip.Write, atip.Delete, atip.Network, atip.Destructive, atip.Billable, atip.SecretRead, atip.Persistence, atip.RemoteMutation:
			// The tool's "no" speaks for the tool, not for the code it is handed.
			return atip.Unknown
		}
	}
	return v
}

// Certainty joins how well the words of a step are known with how exactly they
// resolved.
func (s *Step) Certainty() string {
	switch {
	case s.Confidence == policy.Opaque || s.Call.Exactness == atip.Unresolved:
		return "opaque"
	case s.Confidence == policy.Bounded || s.Call.Exactness == atip.Bounded:
		return "bounded"
	}
	return "exact"
}

// Foreign reports a step whose code is the project's, the caller's or unknown.
func (s *Step) Foreign() bool {
	return s.RunsCode != policy.CodeNone || s.Call.Effects[atip.ExecOpaque].Value == atip.Yes
}

func Harmless(e atip.Effect, source string) atip.Fact {
	v := atip.No
	if e.Dangerous() == atip.No {
		v = atip.Yes
	}
	return atip.Fact{Value: v, Source: source, Rank: atip.Vendor}
}

// MaxSteps bounds the commands of one run, whatever runs inside what.
const MaxSteps = 600

var ErrTooMany = &shell.SyntaxError{Msg: "it holds more commands than are judged", Fix: "split it into several commands"}

// Relative reports whether a directory matters to any of these steps.
func Relative(steps []*Step) bool {
	for _, s := range steps {
		if len(s.Call.CodeFiles) > 0 || strings.IndexByte(s.Argv[0], '/') > 0 || len(s.Call.Nested) > 0 {
			return true
		}
		for _, r := range s.Call.Resources {
			if r.Kind == "path" && !filepath.IsAbs(r.Value) {
				return true
			}
		}
	}
	return false
}

// Shown replaces what is not known in words by a sign for it.
func Shown(argv []string) []string {
	out := make([]string, len(argv))
	for i, w := range argv {
		out[i] = strings.ReplaceAll(strings.ReplaceAll(w, shell.HoleSplit, "…"), shell.Hole, "…")
	}
	return out
}

// ShowEffects lets a step have the effects that commands in its text certainly have. It
// is for steps that ask or are denied because of them: one more never loosens that.
func (s *Step) ShowEffects(inner []*Step) {
	for _, in := range inner {
		for _, e := range [...]atip.Effect{atip.Delete, atip.Destructive, atip.SecretRead, atip.Network, atip.RemoteMutation, atip.Persistence, atip.Billable} {
			if in.Call.Effects[e].Value == atip.Yes && s.Call.Effects[e].Value != atip.Yes {
				s.Call.Effects[e] = atip.Fact{Value: atip.Yes, Source: "text", Rank: atip.Vendor}
			}
		}
	}
}

// Removes reports a command that deletes or destroys something.
func Removes(steps []*Step) bool {
	for _, s := range steps {
		if e := s.Call.Effects; s.RunsCode == policy.CodeNone && s.Call.Tool != "" && (e[atip.Delete].Value == atip.Yes || e[atip.Destructive].Value == atip.Yes) {
			return true
		}
	}
	return false
}

// Strange reports a step that policy grants a loopback of the run's own at most.
func (s *Step) Strange() bool {
	return s.RunsCode != policy.CodeNone || s.Call.Provenance.Channel == "none"
}

// RedirectedAs gives the known part of a step what the shell itself opens for it, which no
// start is asked about.
func (s *Step) RedirectedAs(t *Step) {
	for _, r := range s.Call.Resources {
		if r.Why == "redirection" {
			t.Call.Resources = append(t.Call.Resources, r)
			t.Raise(r)
		}
	}
	for e, fact := range s.Call.Effects {
		if fact.Source == "redirection" {
			t.Call.Effects[e] = fact
			t.Hosts = s.Hosts
		}
	}
}

// DecidedAt says when the words of a step are decided: "plan" or "exec".
func (s *Step) DecidedAt() string {
	if s.AtExec {
		return "exec"
	}
	return "plan"
}

// ShowRemoval lets a step that asks because of its text have the effect that is in it.
func (s *Step) ShowRemoval(text string) {
	if connects(text) {
		s.Call.Effects[atip.Network] = atip.Fact{Value: atip.Yes, Source: "text", Rank: atip.Vendor}
	}
	if removesFiles(text) || ContainsAny(text, "rm -r", "rm -f") {
		for _, e := range [...]atip.Effect{atip.Delete, atip.Destructive} {
			s.Call.Effects[e] = atip.Fact{Value: atip.Yes, Source: "text", Rank: atip.Vendor}
		}
	}
}

// RunsFile marks a step that runs code which a file of the workspace names or holds.
func (s *Step) RunsFile(path, why string) {
	s.Call.Effects[atip.ExecOpaque] = atip.Fact{Value: atip.Yes, Source: "file", Pointer: path, Rank: atip.Vendor}
	s.RunsCode = max(s.RunsCode, policy.CodeProject)
	s.Call.Warnings = append(s.Call.Warnings, why)
}

// ShowVerbs takes a tool of which nobody knows what it does by its word: one that is told
// to delete destroys something.
func (s *Step) ShowVerbs() {
	for i, w := range s.Argv {
		if i == 0 {
			w = filepath.Base(w)
			if strings.HasPrefix(w, "drop") {
				w = "drop" // dropdb, dropuser
			}
		}
		first, _, _ := strings.Cut(strings.TrimLeft(w, "-/:"), " ")
		for part := range strings.FieldsFuncSeq(strings.ToLower(first), func(r rune) bool { return strings.ContainsRune(":=-_.", r) }) {
			var effects []atip.Effect
			switch part {
			case "delete", "destroy", "drop", "purge", "wipe", "remove", "rm", "del", "erase", "terminate", "truncate", "flush", "flushall", "prune", "clean", "uninstall", "unpublish", "reset", "nuke", "obliterate", "downgrade":
				effects = []atip.Effect{atip.Destructive}
			case "publish", "push", "deploy", "upload", "release":
				effects = []atip.Effect{atip.RemoteMutation, atip.Network}
			}
			for _, e := range effects {
				if s.Call.Effects[e].Value != atip.Unknown {
					continue
				}
				s.Call.Effects[e] = atip.Fact{Value: atip.Yes, Source: "word " + w, Rank: atip.Inferred}
			}
		}
	}
}

// TellTale names programs that a word, where a command may stand, can hardly mean anything
// else by. The verbs of other tools (`install`, `halt`, `start`) are not among them.
func TellTale(word string) bool {
	switch filepath.Base(word) {
	case "rm", "rmdir", "unlink", "shred", "dd", "truncate", "mv", "cp", "tee", "chmod", "chown", "find", "cat", "head", "tail", "base64", "xxd", "tar", "curl", "wget",
		"sh", "bash", "dash", "zsh", "ksh", "env", "sudo", "nohup", "xargs", "git", "gh", "kubectl", "aws", "gcloud", "terraform", "docker", "psql", "mysql":
		return true
	}
	return false
}
