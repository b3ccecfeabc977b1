package wiring

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// glue is a script that an agent itself starts its shell with. It has no command of a model in
// it, and does what no command of a model may: it reads the user's start-up file and writes
// down what that defines. It is known by its digest, with $HOME and other paths taken out.
type glue struct {
	agent, versions, what, sum string
}

func glues() []glue {
	return []glue{
		{"claude", "2.1.197", "snapshot of the shell, with a .bashrc", "b3eb45ba4e73d663dbc41f3893de8c00a06abd972b634afb8d580c4c1b76db51"},
		{"claude", "2.1.197", "snapshot of the shell, without a .bashrc", "e4db93e18b1de3c323d6dff09890c8fea50e816b880d3ec3bd916e3e628e96e2"},
		{"claude", "2.1.330", "snapshot of the shell, with a .bashrc", "b5aea758a9952dd993d4cd1c3697c8bd475b6041280634271a5c7be9c72fb4b9"},
		{"claude", "2.1.330", "snapshot of the shell, without a .bashrc", "8f8411a0313a764a56a36542031559b798ec701abaea09f1ae5d8c29e25868d0"},
	}
}

// OwnScript reports whether a text is exactly such a script, but for the paths in it.
func OwnScript(text, home string) bool {
	plain, ok := withoutPaths(text, home)
	if !ok {
		return false
	}
	h := sha256.Sum256([]byte(plain))
	sum := hex.EncodeToString(h[:])
	return slices.ContainsFunc(glues(), func(g glue) bool { return g.sum == sum })
}

// withoutPaths replaces what differs from call to call, each at its place and of its form. What
// stands in its place begins with a NUL byte, which no word of a command line has, so that a text
// that has the replacement in it is another text.
func withoutPaths(text, home string) (string, bool) {
	if !strings.HasPrefix(text, "SNAPSHOT_FILE=") || home == "" || strings.Contains(text, "\x00") {
		return "", false
	}
	const word = `/[A-Za-z0-9_./@%+,-]+`
	for _, row := range [...][2]string{
		{`^SNAPSHOT_FILE=` + regexp.QuoteMeta(home) + `/\.claude/shell-snapshots/snapshot-bash-[0-9]+-[a-z0-9]+\.sh\n`, "SNAPSHOT_FILE=\x00FILE\n"},
		{`source "` + regexp.QuoteMeta(home) + `/\.bashrc" < /dev/null\n`, "source \"\x00RC\" < /dev/null\n"},
		{`_cc_bin=` + word + `\n`, "_cc_bin=\x00PROGRAM\n"},
		{`\[\[ -x ` + word + `/claude \]\]`, "[[ -x \x00PROGRAM ]]"},
		{`(ARGV0=|exec -a )(rg|bfs|ugrep) ` + word + `/claude `, "$1$2 \x00PROGRAM "},
		{`<< '(PATH|CLAUDE_CODE)_END_[a-z0-9]+'\n`, "<< '\x00END'\n"},
		{`\nexport PATH=(?:` + `[A-Za-z0-9_./:@%+,~-]*|'[A-Za-z0-9_./:@%+,~ =()-]*')\n(PATH|CLAUDE_CODE)_END_[a-z0-9]+\n`, "\nexport PATH=\x00PATH\n\x00END\n"},
	} {
		text = regexp.MustCompile(row[0]).ReplaceAllString(text, row[1])
	}
	return text, !strings.Contains(text, home)
}
