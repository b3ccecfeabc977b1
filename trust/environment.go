package trust

import (
	"path/filepath"
	"strings"
)

// WithCaps returns id with more caps, such as those only the metadata of a tool
// can tell: CapCodeArgument, CapFetchesCode, CapIndirectStart.
func (id Identity) WithCaps(caps ...string) Identity {
	out := append([]string(nil), id.Caps...)
	id.Caps = out
	for _, c := range caps {
		if !id.HasCap(c) {
			id.Caps = append(id.Caps, c)
		}
	}
	return id
}

// WithEnvironment returns id with CapLoaderEnvironment if the child will have a
// variable that brings foreign code into one of the programs: no digest covers
// that code. env has entries NAME=value or NAME.
func (id Identity) WithEnvironment(env []string) Identity {
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if loadsAnywhere(name) {
			return id.WithCaps(CapLoaderEnvironment)
		}
		for _, part := range id.Chain {
			if loadsInto(filepath.Base(part.Path), name) {
				return id.WithCaps(CapLoaderEnvironment)
			}
		}
	}
	return id
}

func loadsAnywhere(name string) bool {
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || name == "GLIBC_TUNABLES" || name == "GCONV_PATH"
}

// loadsInto knows the variables by which interpreters load code. Some PYTHON and
// NODE variables only tune; they count too, because the lists of those that do
// not grow with every release.
func loadsInto(program, name string) bool {
	is := func(prefix string) bool { return strings.HasPrefix(program, prefix) }
	has := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	switch {
	case is("python"), is("pypy"):
		return has("PYTHON")
	case is("node"), is("npm"), is("npx"):
		return has("NODE_")
	case is("perl"):
		return has("PERL5")
	case is("ruby"):
		return has("RUBY")
	case is("java"):
		return name == "JAVA_TOOL_OPTIONS" || name == "_JAVA_OPTIONS" || name == "JDK_JAVA_OPTIONS" || name == "CLASSPATH"
	case is("git"):
		return has("GIT_")
	case is("bash"), is("sh"), is("dash"), is("ksh"), is("zsh"):
		return name == "BASH_ENV" || name == "ENV" || name == "ZDOTDIR"
	}
	return false
}
