package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConditionsOfRules asks the program about each condition and each key of rules, as a
// policy has them: a command that it is about, and one beside it.
func TestConditionsOfRules(t *testing.T) {
	a := newAsker(t)
	put(t, a.ws, map[string]string{"src/a": "a\n", "sub/b": "b\n", "Makefile": "all:\n\techo x\n", "x.sh": "#!/bin/sh\necho x\n", "build/o": "o\n", ".gitignore": "build/\n"})
	a.tool("mystery", "echo ran")
	if err := os.Chmod(filepath.Join(a.ws, "x.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	all := `"grants":["write","delete","network","destructive","irreversible","billable","privileged","persistence","remoteMutation","execOpaque"]`
	deny := func(when string) string { return `{"id":"r","decision":"deny","when":{` + when + `}}` }
	allow := func(when string) string { return `{"id":"r","decision":"allow","when":{` + when + `},` + all + `}` }
	for _, row := range []struct {
		name, rules, env string
		hit, miss        string // shell texts; the rule r speaks of the first and not of the second
	}{
		{"tool", deny(`"tool":"ls"`), "", "ls", "cat src/a"},
		{"tool, in a wrapper", deny(`"tool":"ls"`), "", "env X=1 nice ls", "env X=1 cat src/a"},
		{"tool, a pattern", deny(`"tool":"l?"`), "", "/bin/ls", "cat src/a"},
		{"tool, a path", deny(`"tool":"/usr/bin/touch"`), "", "touch src/a", "ls"},
		{"tools", deny(`"tool":["head","tail"]`), "", "tail src/a", "cat src/a"},
		{"command", deny(`"tool":"git","command":["stash","log"]`), "", "git -C . log --oneline", "git status"},
		{"command, two words", deny(`"tool":"git","command":"stash drop"`), "", "git stash drop", "git stash list"},
		{"no command", deny(`"tool":"go","command":""`), "", "go", "go version"},
		{"option", deny(`"tool":"git","option":{"all":true}`), "", "git branch -a", "git branch"},
		{"option, another spelling", deny(`"tool":"git","option":{"a":true}`), "", "git branch --all", "git branch"},
		{"option, short for long", deny(`"tool":"kubectl","option":{"n":"prod"}`), "", "kubectl --namespace=prod get pods", "kubectl --namespace=test get pods"},
		{"option and value", deny(`"tool":"kubectl","option":{"context":"prod*"}`), "", "kubectl --context=prod-eu get pods", "kubectl --context=staging get pods"},
		{"unknownOptions", deny(`"tool":"ls","unknownOptions":true`), "", "ls --no-such-option", "ls -l"},
		{"effects", deny(`"effects":{"delete":true}`), "", "rm src/a", "ls"},
		{"effects, both", deny(`"effects":{"network":true,"remoteMutation":true}`), "", "git push", "git fetch"},
		{"anyEffect", deny(`"anyEffect":["delete","remoteMutation"]`), "", "git push", "git status"},
		{"path, a class", deny(`"path":{"class":"workspace-regenerable","access":"delete"}`), "", "rm build/o", "rm src/a"},
		{"path, a pattern", deny(`"path":{"glob":"**/src/**","access":["write","delete"]}`), "", "echo x > src/a", "cat src/a"},
		{"path, by cd", deny(`"path":{"glob":"**/sub/b"}`), "", "cd sub && cat b", "cat src/a"},
		{"path, recursive", deny(`"path":{"class":"workspace*","recursive":true,"access":"delete"}`), "", "rm -r src", "rm src/a"},
		{"path, outside", deny(`"path":{"notIn":"workspace"}`), "", "cat /etc/hostname", "cat src/a"},
		{"path, inside", deny(`"path":{"in":"workspace","access":"write"}`), "", "touch src/a", "touch /tmp/x"},
		{"host, a name", deny(`"host":"docs.example"`), "", "curl https://docs.example/x", "curl https://other.example/x"},
		{"host, below", deny(`"host":"*.docs.example"`), "", "curl https://a.docs.example/x", "curl https://docs.example/x"},
		{"host, a port", deny(`"host":"docs.example:8443"`), "", "curl https://docs.example:8443/", "curl https://docs.example/"},
		{"host, a range", deny(`"host":"10.0.0.0/8"`), "", "curl http://0x0a.1.2.3/", "curl http://192.0.2.1/"},
		{"host, a range, decimal", deny(`"host":"10.0.0.0/8"`), "", "curl http://167772161/", "curl http://192.0.2.1/"},
		{"host, octal and mapped", deny(`"host":"loopback"`), "", "curl 'http://[::ffff:127.0.0.1]/' http://0177.0.0.1/", "curl http://192.0.2.1/"},
		{"host, private", deny(`"host":"private"`), "", "curl http://192.168.1.1/", "curl http://192.0.2.1/"},
		{"host, metadata", deny(`"host":"metadata"`), "", "curl http://169.254.169.254/", "curl http://192.0.2.1/"},
		{"host, public", deny(`"host":"public"`), "", "curl https://docs.example/", "curl http://127.0.0.1/"},
		{"host, service", deny(`"host":"service"`), "", "npm view x", "curl https://docs.example/"},
		{"trust, a level", deny(`"trust":{"level":"UNSIGNED"},"tool":"ls"`), "", "ls", "cat src/a"},
		{"trust, a reason", deny(`"trust":{"reason":"system_path"}`), "", "ls", "gh pr list"},
		{"rank, below", deny(`"rank":{"below":"org"}`), "", "mystery", "ls"},
		{"metadata", deny(`"metadata":"none"`), "", "mystery", "ls"},
		{"confidence", deny(`"confidence":["opaque","bounded"]`), "", `$(cat src/a)`, "ls"},
		{"code, of the workspace", deny(`"code":"project"`), "", "./x.sh", "ls"},
		{"code, inline", deny(`"code":"inline"`), "", "python3 -c 'print(1)'", "python3 --version"},
		{"edge", deny(`"edge":"written-code"`), "", "sed s/a/b/ src/a > y.sh; chmod +x y.sh; ./y.sh", "echo 'ls -l' > y.sh; chmod +x y.sh; ./y.sh"},
		{"cwd", deny(`"tool":"ls","cwd":"**/sub"`), "", "cd sub && ls", "cd src && ls"},
		{"ci", deny(`"tool":"ls","ci":true`), "CI=1", "ls", "cat src/a"},
		{"not in ci", deny(`"tool":"ls","ci":false`), "", "ls", "cat src/a"},
		{"delegated", deny(`"tool":"ls","delegated":false`), "", "ls", "cat src/a"},
		{"agent", deny(`"tool":"ls","agent":"claude*"`), "ATIP_AGENT_ID=claude-code", "ls", "cat src/a"},
		{"unless", `{"id":"r","decision":"deny","when":{"tool":"git"},"unless":[{"command":["status"]},{"command":["log"]}]}`, "", "git diff", "git log"},
		{"unless, a path", `{"id":"r","decision":"deny","when":{"tool":"touch"},"unless":[{"path":{"glob":"**/src/**"}}]}`, "", "touch src/a sub/b", "touch src/a"},
		{"onUnknown", `{"id":"r","decision":"deny","onUnknown":"deny","when":{"tool":"mystery","effects":{"destructive":true}}}`, "", "mystery", "ls"},
		{"allow, known", allow(`"tool":"rm","known":true`), "", "rm src/a", "ls"},
		{"allow, a path", allow(`"tool":"rm","path":{"glob":"**/src/**"}`), "", "rm src/a", "rm sub/b"},
		{"allow, confined", allow(`"tool":"rm","confined":true`), "", "rm src/a", "ls"},
		{"allow, exact", allow(`"tool":"rm","confidence":"exact"`), "", "rm src/a", `rm "$(cat src/a)"`},
		{"allow, a rank", allow(`"tool":"rm","rank":{"atLeast":"org"}`), "", "rm src/a", "ls"},
		{"allow, a level", allow(`"tool":"rm","trust":{"level":["UNSIGNED","UNVERIFIED","VERIFIED"]}`), "", "rm src/a", "ls"},
		{"allow, a host", allow(`"tool":"curl","host":"docs.example"`), "", "curl https://docs.example/", "curl https://docs.example/ https://other.example/"},
		{"allow, an upper bound", allow(`"tool":"curl","effects":{"write":false},"host":"docs.example"`), "", "curl https://docs.example/", "curl -o x https://docs.example/"},
		{"allow, not declared", `{"id":"r","decision":"allow","when":{"tool":"rm"},` + all + `,"notDeclared":["network"]}`, "", "rm src/a", "ls"},
		{"allow, expires", `{"id":"r","decision":"allow","when":{"tool":"rm"},` + all + `,"expires":"2999-01-01"}`, "", "rm src/a", "ls"},
	} {
		a.userPolicy(`{"version":1,"rules":[` + row.rules + `]}`)
		speaks := func(text string) bool {
			t.Helper()
			cmd := a.command("explain", "-o", "json", "-c", text)
			cmd.Env = append(cmd.Env, "PATH="+a.home+"/stubs:/usr/local/bin:/usr/bin:/bin")
			cmd.Env = append([]string{row.env}, cmd.Env...)
			out, err := cmd.Output()
			var doc struct{ Reasons []struct{ Rule string } }
			if err != nil || json.Unmarshal(out, &doc) != nil {
				t.Errorf("%s: %v: %s", row.name, err, out)
			}
			for _, r := range doc.Reasons {
				if r.Rule == "user/r" {
					return true
				}
			}
			return false
		}
		if !speaks(row.hit) {
			t.Errorf("%s: %s says nothing of %s", row.name, row.rules, row.hit)
		}
		if speaks(row.miss) {
			t.Errorf("%s: %s speaks of %s", row.name, row.rules, row.miss)
		}
	}
	// What has expired counts no more.
	a.userPolicy(`{"version":1,"switches":{"undoable":false},"rules":[` + strings.Replace(allow(`"tool":"rm"`), `"id"`, `"expires":"2001-01-01","id"`, 1) + `]}`)
	if code, e := a.try(nil, "--", "rm", "src/a"); code != 77 || e.Code != "E2010" {
		t.Errorf("an expired rule: exit %d: %s", code, e.text)
	}
}
