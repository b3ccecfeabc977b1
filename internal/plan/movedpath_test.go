package plan

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/atip-dev/atip-exec/policy"
)

// A text that sets PATH to known directories is still known, and a name that may lead to a file
// of the workspace is code of the workspace, whatever it is called.
func TestTextSetsPath(t *testing.T) {
	m := shellWorld(t)
	config := filepath.Join(m.Getenv("HOME"), ".config", "agent-tools")
	for name, text := range map[string]string{"bin/mine": "#!/bin/sh\necho mine\n", "bin/gh": "#!/bin/sh\nenv\n",
		config + "/policy.json": `{"version":1,"rules":[{"id":"pr","decision":"allow","when":{"tool":"gh","command":["pr create"]},"grants":["network","remoteMutation","filesystem.write"]}]}`} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		text  string
		allow bool
	}{
		{"PATH=$PWD/bin:$PATH; mine", true},
		{"export PATH=\"$PWD/bin:$PATH\" && mine && ls", true},
		{"PATH=bin:$PATH mine", true},
		{"PATH=bin:$PATH sh -c 'mine; ls'", true},
		{"test -d bin && export PATH=$PWD/bin:$PATH; ls", true},
		{"PATH=/usr/bin:/bin ls", true},
		{"PATH=$PWD:$PATH; x.sh", false},
		{"PATH=.:$PATH x.sh", false},
		{"PATH=:$PATH x.sh", false},
		{"PATH=$PWD/.git:$PATH ls", false},
		{"PATH=/tmp:$PATH ls", false},
		{"PATH=~/.local/bin:$PATH ls", false},
		{"PATH=$PWD/none:$PATH ls", false},
		{"cd \"$X\"; PATH=bin:$PATH mine", false},
		{"PATH=$(cat x.sh):$PATH ls", false},
		{"export PATH=$PATH:$(go env GOPATH)/bin && notinstalled ./...; ls", true},
		{"export PATH=\"$(go env GOPATH)/bin:$PATH\" && ls", true},
		{"\"$(go env GOPATH)\"/bin/notinstalled ./...", true},
		{"export PATH=$(go env GOPATH)/bin && ls", false},
		{"export PATH=$(go env GOPATH)/bin:$PATH && gh pr create --fill", false},
		{"export PATH=$PATH:$(go env GOPATH)/bin && curl https://example.com", false},
		{"export PATH=$(go env GOPATH)/bin:$PATH && rm -rf /etc/x", false},
		{"export PATH=$PATH:$(go env GOPATH)/bin && cat ~/.ssh/id_rsa", false},
		{"export PATH=$PATH:$(curl -s https://example.com)/bin && ls", false},
		{"\"$(cat x.sh)\"/bin/rm -rf /etc/x", false},
		{"$(cat x.sh)/bin/notinstalled", false},
		{"env -i PATH=$PATH HOME=$HOME ls", true},
		{"env PATH=$PWD/bin:$PATH mine", true},
		{"env PATH=$PWD/bin:$PATH gh pr create --fill", false},
		{"env PATH=/tmp:$PATH ls", false},
		{"env PATH=$PATH PATH=/tmp ls", false},
		{"env -i HOME=/tmp ls", false},
		{"env PATH=$PATH rm -rf /etc/x", false},
		{"env rm HOME=$HOME -rf /etc/x", false},
		{"env PATH=$PATH LD_PRELOAD=./x.so ls", false},
		{"\"$(cat x.sh)\"/bin/gh pr create --fill", false},
		{"gh pr create --fill; true", true}, // the control: the account permits the system's gh
		{"PATH=$PWD/bin:$PATH; gh pr create --fill", false},
		{"PATH=$PATH:$PWD/bin; gh pr create --fill", false},
		{"PATH=$PWD/bin:$PATH; curl https://example.com", false},
		{"PATH=$PWD/bin:$PATH; rm -rf /etc/x", false},
	} {
		if got := planOf(t, m, row.text).Decision.Action == policy.Allow; got != row.allow {
			t.Errorf("%q: allow %t", row.text, got)
		}
	}
	// The same without a value: what ${X:-} says holds where X is not set, and `-n` of it never does.
	for _, row := range []struct {
		text  string
		allow bool
	}{
		{`if [ -n "${OLD_X:-}" ]; then PATH=$OLD_X; fi; ls`, true},
		{`if [ -n "${OLD_X:-}" ]; then PATH=$OLD_X; else rm -rf /etc/x; fi; ls`, false},
		{`if [ -n "$BASH" ]; then rm -rf /etc/x; fi`, false},
		{`if [ -n "${BASH:-}" ]; then rm -rf /etc/x; fi`, false},
		{`if [ -n "${PATH:-}" ]; then rm -rf /etc/x; fi`, false},
		{`OLD_X=1; if [ -n "${OLD_X:-}" ]; then rm -rf /etc/x; fi`, false},
		{`read OLD_X; if [ -n "${OLD_X:-}" ]; then rm -rf /etc/x; fi`, false},
	} {
		if got := planOf(t, m, row.text).Decision.Action == policy.Allow; got != row.allow {
			t.Errorf("%q: allow %t", row.text, got)
		}
	}
}
