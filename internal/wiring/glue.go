package wiring

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
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
		{"claude", "2.1.197", "snapshot of the shell, with a .bashrc", "5fe43bd51da75f8f9535b7724667c68a03eff5ec6d2f5321579d187596b23f21"},
		{"claude", "2.1.197", "snapshot of the shell, without a .bashrc", "40f6e33daf990b14e494ca23c20eea0d87eab77abe907b33bcffb63245225550"},
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
	for _, g := range glues() {
		if g.sum == sum {
			return true
		}
	}
	return false
}

// withoutPaths replaces what differs from call to call, each at its place and of its form.
func withoutPaths(text, home string) (string, bool) {
	if !strings.HasPrefix(text, "SNAPSHOT_FILE=") || home == "" {
		return "", false
	}
	const word = `[A-Za-z0-9_./@%+,-]+`
	for _, row := range [...][2]string{
		{`^SNAPSHOT_FILE=` + regexp.QuoteMeta(home) + `/\.claude/shell-snapshots/snapshot-bash-[0-9]+-[a-z0-9]+\.sh\n`, "SNAPSHOT_FILE=FILE\n"},
		{`source "` + regexp.QuoteMeta(home) + `/\.bashrc" < /dev/null\n`, "source \"RC\" < /dev/null\n"},
		{`_cc_bin=` + word + `\n`, "_cc_bin=PROGRAM\n"},
		{`<< 'PATH_END_[a-z0-9]+'\nexport PATH=(?:` + `[A-Za-z0-9_./:@%+,~-]*|'[A-Za-z0-9_./:@%+,~ =()-]*')\nPATH_END_[a-z0-9]+\n`, "<< 'PATH_END'\n"},
	} {
		text = regexp.MustCompile(row[0]).ReplaceAllLiteralString(text, row[1])
	}
	return text, !strings.Contains(text, home)
}
