package run

import (
	"slices"
	"testing"
)

func TestScrub(t *testing.T) {
	environ := []string{"PATH=/bin", "LD_PRELOAD=/x.so", "PYTHONPATH=/p", "GIT_SSH_COMMAND=sh", "BASH_FUNC_x%%=() { :; }", "GH_TOKEN=a", "NPM_TOKEN=b",
		"DATABASE_URL=postgres://u:pw@h/db", "HOMEPAGE_URL=https://example.com/", "A=1", "A=2", "=odd", "noequals", "ATIP_EXEC_SANDBOX=T3", "NODE_OPTIONS=--inspect", "TMPDIR=/tmp"}
	out := scrub(environ, environRules{declared: []string{"GH_TOKEN"}, pass: []string{"NODE_*"}, drop: []string{"HOMEPAGE_URL"}, set: map[string]string{"TMPDIR": "/w/tmp", "X": "y"}})
	want := []string{"PATH=/bin", "GH_TOKEN=a", "A=1", "NODE_OPTIONS=--inspect", "TMPDIR=/w/tmp", "X=y"}
	if !slices.Equal(out.entries, want) {
		t.Errorf("entries %q, want %q", out.entries, want)
	}
	dropped := []string{"ATIP_EXEC_SANDBOX", "BASH_FUNC_x%%", "DATABASE_URL", "GIT_SSH_COMMAND", "HOMEPAGE_URL", "LD_PRELOAD", "NPM_TOKEN", "PYTHONPATH"}
	if !slices.Equal(out.dropped, dropped) {
		t.Errorf("dropped %q, want %q", out.dropped, dropped)
	}
	if !slices.Equal(out.credentials, []string{"GH_TOKEN"}) {
		t.Errorf("credentials %q", out.credentials)
	}
}

func TestUnsafeGitKey(t *testing.T) {
	tests := []struct{ config, want string }{
		{"[core]\n\trepositoryformatversion = 0\n\tbare = false\n[user]\n\tname = x\n", ""},
		{"[remote \"o\"]\n\turl = https://h/r\n\tfetch = +refs/heads/*:refs/remotes/o/*\n", ""},
		{"[core]\n\tfsmonitor = touch x\n", "core.fsmonitor"},
		{"[diff \"x\"]\n\ttextconv = cat\n", "diff.x.textconv"},
		{"[include]\n\tpath = other\n", "include.path"},
		{"[alias]\n\tst = !sh\n", "alias.st"},
		{"[remote \"o\"]\n\turl = ext::sh -c x\n", "remote.o.url"},
		{"[remote \"o\"]\n\turl = --upload-pack=x\n", "remote.o.url"},
		{"[core]\n\thooksPath = h\n", "core.hookspath"},
		{"[user]\n\tname = a \\\n", "a continued line"},
		{"[core\n", "a malformed section"},
		{"[CORE]\n\tFsMonitor = x\n", "core.fsmonitor"},
	}
	for _, tt := range tests {
		if got := unsafeGitKey([]byte(tt.config), nil); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.config, got, tt.want)
		}
	}
}

func FuzzUnsafeGitKey(f *testing.F) {
	f.Add([]byte("[core]\n\tfsmonitor = x\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		safe := unsafeGitKey(raw, nil) == ""
		withHook := append(append([]byte{}, raw...), "\n[core]\n\tfsmonitor = x\n"...)
		if safe && unsafeGitKey(withHook, nil) == "" {
			t.Errorf("%q hides a key that runs a program", raw)
		}
	})
}
