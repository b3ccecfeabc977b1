package distro

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/trust"
)

const rpmProgram = "/usr/bin/rpm"

// RPM asks rpm itself, whose database only it can read. It is the one program that is
// started for an answer; where it is not root's alone, there is none.
func (r Root) RPM(path string) (Answer, bool) {
	if !r.Owned(rpmProgram) || !r.Owned("/usr/bin") || !strings.HasPrefix(path, "/") {
		return Answer{}, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	run := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, rpmProgram, args...)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "HOME=/"}
		return cmd.Output()
	}
	owner, err := run("-qf", "--qf", "%{NAME}\n", "--", path)
	if err != nil {
		return Answer{Why: "no package owns it"}, true
	}
	name, _, _ := strings.Cut(string(owner), "\n")
	out, _ := run("-Vf", "--nodeps", "--noscripts", "--", path) // its status only says that something differs
	return RPMAnswer(out, path, name), true
}

// RPMAnswer reads what `rpm -V` prints: a line for each file that differs, with "5" in the
// third column if its content does.
func RPMAnswer(out []byte, path, owner string) Answer {
	for l := range bytes.Lines(out) {
		text := strings.TrimRight(string(l), "\n")
		if !strings.HasSuffix(text, " "+path) || len(text) < 12 {
			continue
		}
		fields := strings.Fields(text)
		switch {
		case len(fields) > 2 && fields[1] == "c":
			return Answer{Package: owner, Why: "it is a configuration file, which is meant to be changed"}
		case fields[0] == "missing", text[2] == '?':
			return Answer{Package: owner, Why: "rpm could not read it"}
		case text[2] == '5':
			return Answer{Distro: trust.DistroMismatch, Package: owner, Why: path + " is not what the package " + owner + " installed"}
		}
	}
	return Answer{Distro: trust.DistroMatch, Package: owner}
}
