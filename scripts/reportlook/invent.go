package main

import (
	"fmt"
	"maps"
	"strings"

	"github.com/atip-dev/atip-exec/internal/audit"
)

// hostile are commands that try to be markup, to steer a terminal or to hide.
var hostile = [][]string{
	{"printf", "</script><script>window.broken=1</script>"},
	{"echo", `"><img src=x onerror=window.broken=1>`, "'", "<!--", "]]>"},
	{"ls", "\u202egnp.exe", "\u200b", "a\u0301\u0301\u0301"},
	{"cat", "\x1b[31mred\x1b]0;title\x07", "\u2028line\u2029"},
}

// invent appends records as runs leave them. The same number makes the same commands.
func invent(dir string, n int) error {
	log, err := audit.Open(dir)
	if err != nil {
		return err
	}
	defer log.Close()
	for i := range n {
		id := audit.NewID()
		if i%2 == 0 {
			intent := record(i)
			intent["id"], intent["kind"] = id+"-intent", "intent"
			if _, err := log.Append(intent); err != nil {
				return err
			}
		}
		rec := record(i)
		rec["id"] = id
		if _, err := log.Append(rec); err != nil {
			return err
		}
	}
	return nil
}

func record(i int) map[string]any {
	argv := []string{"git", "commit", "-m", fmt.Sprintf("change %d of the parser", i)}
	action, rule, exit, state, kind := "allow", "builtin/git_local", 0, "finished", "run"
	effects := map[string]any{"read": yes, "write": yes, "network": no, "reversible": yes}
	resources := []any{map[string]any{"kind": "path", "value": ".git", "abs": "/home/dev/shop/.git", "access": "write", "class": "workspace_vcs"}}
	rec := map[string]any{}
	switch i % 10 {
	case 1:
		argv = hostile[i/10%len(hostile)]
		resources = []any{map[string]any{"kind": "path", "value": argv[1], "abs": "/home/dev/shop/" + argv[1], "access": "write", "class": "workspace"}}
	case 2:
		argv, rule = []string{"go", "test", "./..."}, "builtin/project_code"
		rec["starts"] = map[string]any{"decided": 12, "refused": 1, "refusals": []any{map[string]any{"argv": []string{"curl", "https://example.com"}, "code": "E2001", "message": "denied: curl https://example.com"}}}
		effects["subprocess"] = yes
	case 3:
		argv, action, rule, exit, state, kind = []string{"git", "push", "--force", "origin", "main"}, "confirm", "builtin/remote", 77, "refused", "refused"
		effects = map[string]any{"read": yes, "write": unknown, "network": yes, "remoteMutation": yes, "destructive": yes, "reversible": no}
		resources = []any{map[string]any{"kind": "url", "value": "https://git.example.com/shop", "access": "write", "host": "git.example.com"}}
		rec["error"] = map[string]any{"code": "E2010", "message": "approval required: git push --force may destroy data on the remote"}
	case 4:
		argv, action, rule, exit, state, kind = []string{"rm", "-rf", "/"}, "deny", "builtin/root_tree", 77, "refused", "refused"
		effects = map[string]any{"delete": yes, "destructive": yes, "reversible": no}
		resources = []any{map[string]any{"kind": "path", "value": "/", "abs": "/", "access": "delete", "class": "system"}}
		rec["error"] = map[string]any{"code": "E2001", "message": "denied: rm -rf / deletes a home, a workspace or the whole system"}
	case 5:
		argv, rule = []string{"npm", "ci"}, "builtin/network_read"
		effects["network"] = yes
		rec["network"] = map[string]any{"requests": 3, "denied": 1, "log": []any{
			map[string]any{"host": "registry.npmjs.org", "port": 443, "decision": "allow", "via": "connect"},
			map[string]any{"host": "telemetry.example.com", "port": 443, "decision": "deny", "via": "connect", "reason": "not in the list"}}}
		rec["denials"] = []any{map[string]any{"op": "connect", "path": "telemetry.example.com:443", "class": "proxy", "count": 1}}
	case 6:
		argv, action, rule = []string{"gh", "pr", "merge", fmt.Sprint(i)}, "confirm", "builtin/remote"
		effects = map[string]any{"network": yes, "remoteMutation": yes, "reversible": no}
		rec["grant"] = map[string]any{"id": "k7f2", "approver": "dev"}
	case 7:
		argv, exit = []string{"make", "-j8", "check"}, 2
		rule = "builtin/project_code"
	case 8:
		argv, rule = []string{"env"}, "builtin/read"
		rec["filter"] = map[string]any{"stdout": map[string]any{"redacted": true, "redactions": []any{map[string]any{"rule": "github-pat", "tag": "c034b6", "count": 2, "stream": "stdout"}}}}
	case 9:
		rec["undo"] = map[string]any{"checkpoint": i, "changed": map[string]any{"added": 1, "changed": 3, "removed": 2}}
	}
	maps.Copy(rec, map[string]any{"kind": kind, "argv": argv, "cwd": "/home/dev/shop", "uid": 1000, "session": fmt.Sprintf("session-%d", i/2500), "agent": "claude", "exit": exit, "state": state,
		"decision": map[string]any{"action": action, "rules": []string{rule}, "profile": "workspace", "policy": []any{map[string]any{"layer": "builtin", "file": "builtin", "sha256": strings.Repeat("4a", 32)}},
			"steps": []any{map[string]any{"argv": argv, "effects": effects, "resources": resources, "rules": []string{rule}, "sha256": strings.Repeat("7c", 32), "exact": "exact", "tool": argv[0]}}},
		"sandbox": map[string]any{"tier": "T3", "gaps": []any{}, "exec": "open", "net": map[string]any{"mode": "none"}, "write": []any{map[string]any{"path": "/home/dev/shop", "rights": "read,write,exec,remove,list", "why": "workspace"}}},
		"env":     map[string]any{"passed": strings.Fields("HOME LANG PATH PWD SHELL TERM TMPDIR XDG_CACHE_HOME NODE_EXTRA_CA_CERTS PYTHONUNBUFFERED RUST_BACKTRACE")},
		"timing":  map[string]any{"run_ms": i * 37 % 4000}})
	return rec
}

var (
	yes     = map[string]any{"value": "yes", "source": "builtin:git", "rank": "org"}
	no      = map[string]any{"value": "no", "source": "builtin:git", "rank": "org"}
	unknown = map[string]any{"value": "unknown", "source": "builtin:git", "rank": "org"}
)
