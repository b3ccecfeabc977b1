package run

import (
	"slices"
	"sort"
	"strings"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/effects"
)

// environment is what the child gets and what it does not; names only leave this
// package, values never do.
type environment struct {
	entries     []string
	passed      []string
	dropped     []string
	credentials []string
	withheld    []string // of those dropped, the credentials that nothing declared
}

// environRules is what the plan knows when the environment is built.
type environRules struct {
	declared []string          // credential variables that the call may ask for
	pass     []string          // policy env.pass: names or PREFIX_*
	drop     []string          // policy env.drop
	set      map[string]string // policy env.set, then additions of the sandbox
}

// scrub drops what would load code into the child or hand it a credential it did
// not declare. Of two entries with one name the first counts, as for getenv(3).
func scrub(environ []string, r environRules) environment {
	room := len(environ) + len(r.set)
	out := environment{entries: make([]string, 0, room), passed: make([]string, 0, room)}
	for i, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || named(environ[:i], name) {
			continue
		}
		if _, replaced := r.set[name]; replaced {
			continue
		}
		credential := filter.CredentialName(name) || name == "SSH_AUTH_SOCK" || effects.HasUserinfo(value)
		switch {
		case effects.MatchesName(r.drop, name):
			out.dropped = append(out.dropped, name)
			continue
		case effects.MatchesName(r.pass, name):
		case effects.LoadsCode(name), strings.HasPrefix(name, "ATIP_EXEC_"), name == "ATIP_DELEGATION":
			out.dropped = append(out.dropped, name)
			continue
		case credential && !slices.Contains(r.declared, name):
			out.dropped, out.withheld = append(out.dropped, name), append(out.withheld, name)
			continue
		}
		if credential {
			out.credentials = append(out.credentials, name)
		}
		out.entries = append(out.entries, entry)
		out.passed = append(out.passed, name)
	}
	added := make([]string, 0, len(r.set))
	for name := range r.set {
		added = append(added, name)
	}
	sort.Strings(added)
	for _, name := range added {
		out.entries = append(out.entries, name+"="+r.set[name])
		out.passed = append(out.passed, name)
	}
	sort.Strings(out.dropped)
	sort.Strings(out.passed)
	return out
}

// named reports whether an entry has this name.
func named(entries []string, name string) bool {
	for _, e := range entries {
		if len(e) > len(name) && e[len(name)] == '=' && e[:len(name)] == name {
			return true
		}
	}
	return false
}
