package outside

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/place"
)

// TestEnvironment: of all that a caller can set nothing arrives that leads anywhere.
func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "jq")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\necho agent\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	set := map[string]string{"PATH": dir + ":/usr/bin:/bin", "HOME": dir, "LD_PRELOAD": dir + "/x.so", "BASH_ENV": dir + "/rc", "ENV": dir + "/rc", "SSH_ASKPASS": tool,
		"XDG_CONFIG_HOME": dir, "DBUS_SESSION_BUS_ADDRESS": "unix:path=" + dir + "/bus", "DISPLAY": "evil.example:0", "LANG": "../../" + dir, "TERM": "xterm-256color", "LC_ALL": "de_DE.UTF-8",
		"XAUTHORITY": dir + "/xauth", "PYTHONPATH": dir, "NODE_OPTIONS": "--require " + dir, "TMPDIR": dir, "GIT_SSH_COMMAND": tool, "SSL_CERT_FILE": dir, "HTTPS_PROXY": "http://evil.example"}
	home := place.Dirs{Home: "/home/of-account", Config: "/home/of-account/.config/agent-tools", State: "/srv/state/atip-exec"}
	getenv := func(name string) string { return set[name] }
	env := Environ(home, getenv)
	for _, want := range []string{"HOME=/home/of-account", "TERM=xterm-256color", "LC_ALL=de_DE.UTF-8", "XDG_STATE_HOME=/srv/state"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing: %q", want, env)
		}
	}
	for _, entry := range env {
		if strings.Contains(entry, dir) || strings.Contains(entry, "evil") {
			t.Errorf("the caller's %s arrived", entry)
		}
	}
	// The control: with the caller's environment his own program runs.
	for name, want := range map[string]string{"the caller's": "agent\n", "its own": ""} {
		cmd := Command(context.Background(), home, getenv, nil, "/bin/sh", "-c", "command -v "+tool[len(dir)+1:]+" >/dev/null && jq || true")
		if name == "the caller's" {
			cmd.Env = append(cmd.Env, "PATH="+set["PATH"])
		}
		out, err := cmd.Output()
		if err != nil || want != "" && string(out) != want || want == "" && strings.Contains(string(out), "agent") {
			t.Errorf("%s environment: %q, %v", name, out, err)
		}
	}
	if err := Command(context.Background(), home, getenv, nil, "sh", "-c", "true").Run(); err == nil {
		t.Error("a name without a directory was looked up")
	}
}
