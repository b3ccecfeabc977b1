package gitrepo

import "testing"

func TestActive(t *testing.T) {
	tests := []struct{ config, want string }{
		{"[core]\n\trepositoryformatversion = 0\n\tbare = false\n[user]\n\tname = x\n", ""},
		{"[remote \"o\"]\n\turl = https://h/r\n\tfetch = +refs/heads/*:refs/remotes/o/*\n", ""},
		{"[core]\n\tfsmonitor = touch x\n", "core.fsmonitor"},
		{"[core] fsmonitor = touch x\n", "core.fsmonitor"},
		{"[diff \"x\"]\n\ttextconv = cat\n", "diff.x.textconv"},
		{"[include]\n\tpath = other\n", "include.path"},
		{"[alias]\n\tst = !sh\n", "alias.st"},
		{"[remote \"o\"]\n\turl = ext::sh -c x\n", "remote.o.url"},
		{"[remote \"o\"]\n\turl = --upload-pack=x\n", "remote.o.url"},
		{"[core]\n\thooksPath = h\n", "core.hookspath"},
		{"[CORE]\n\tFsMonitor = x\n", "core.fsmonitor"},
		{"[user]\n\tname = a \\\n", ""},
		{"[core\n", "unreadable"},
	}
	for _, tt := range tests {
		if got := activeIn(tt.config); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.config, got, tt.want)
		}
	}
}

func FuzzActive(f *testing.F) {
	f.Add("[core]\n\tfsmonitor = x\n")
	f.Add("[remote \"o\"]\n\turl = https://h/r\n")
	f.Fuzz(func(t *testing.T, config string) {
		if activeIn(config) == "" && activeIn(config+"\n[core]\n\tfsmonitor = x\n") == "" {
			t.Errorf("%q hides a setting that runs a program", config)
		}
	})
}

func activeIn(config string) string {
	settings, err := Parse(config)
	if err != nil {
		return "unreadable"
	}
	return Active(settings)
}
