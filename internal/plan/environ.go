package plan

import (
	"slices"
	"sort"
	"strings"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/step"
)

// environRules is what the plan knows when the environment is built.
type environRules struct {
	declared []string          // credential variables that the call may ask for
	pass     []string          // policy env.pass: names or PREFIX_*
	drop     []string          // policy env.drop
	set      map[string]string // policy env.set, then additions of the sandbox
}

// scrub drops what would load code into the child or hand it a credential it did
// not declare; withheld are the credentials among it that nothing declared. Of two entries with one name the first counts, as for getenv(3).
func scrub(environ []string, r environRules) (out Env, withheld []string) {
	room := len(environ) + len(r.set)
	out = Env{Entries: make([]string, 0, room), Passed: make([]string, 0, room)}
	for i, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || named(environ[:i], name) {
			continue
		}
		if _, replaced := r.set[name]; replaced {
			continue
		}
		credential := filter.CredentialName(name) || name == "SSH_AUTH_SOCK" || step.HasUserinfo(value)
		switch {
		case step.MatchesName(r.drop, name):
			out.Dropped = append(out.Dropped, name)
			continue
		case step.MatchesName(r.pass, name):
		case step.LoadsCode(name), strings.HasPrefix(name, "ATIP_EXEC_"), name == "ATIP_DELEGATION":
			out.Dropped = append(out.Dropped, name)
			continue
		case credential && !slices.Contains(r.declared, name):
			out.Dropped, withheld = append(out.Dropped, name), append(withheld, name)
			continue
		}
		if credential {
			out.Credentials = append(out.Credentials, name)
		}
		out.Entries = append(out.Entries, entry)
		out.Passed = append(out.Passed, name)
	}
	added := make([]string, 0, len(r.set))
	for name := range r.set {
		added = append(added, name)
	}
	sort.Strings(added)
	for _, name := range added {
		out.Entries = append(out.Entries, name+"="+r.set[name])
		out.Passed = append(out.Passed, name)
	}
	sort.Strings(out.Dropped)
	sort.Strings(out.Passed)
	return out, withheld
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
