package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asking is a program of the workspace that starts its words in a directory, with its own
// descriptors. @fd:DIR in a word is a descriptor of that directory.
const asking = `import os, subprocess, sys
words = sys.argv[2:]
for i, w in enumerate(words):
    head, at, path = w.partition('@fd:')
    if at:
        fd = os.open(path, os.O_RDONLY)
        os.set_inheritable(fd, True)
        words[i] = head + '/proc/self/fd/%d' % fd
sys.exit(subprocess.run(words, cwd=sys.argv[1], close_fds=False).returncode)
`

// forging is one that asks the parent run itself, without an atip-exec of its own that would
// judge first.
const forging = `import base64, json, os, socket, sys
b64 = lambda x: base64.b64encode(x.encode()).decode()
up = socket.socket(fileno=int(os.environ["ATIP_EXEC_PARENT"][3:]))
mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
out, w = os.pipe()
question = {"kind": "start", "cwd": os.path.abspath(sys.argv[1])}
if len(sys.argv) == 3: question.update(isShell=True, shell=b64(sys.argv[2]))
else: question["argv"] = [b64(x) for x in sys.argv[2:]]
socket.send_fds(up, [json.dumps(question).encode()], [theirs.fileno(), os.open("/dev/null", os.O_RDONLY), w, w])
theirs.close(); os.close(w)
answer = json.loads(mine.recv(65536))
while part := os.read(out, 65536): os.write(1, part)
print(answer)
sys.exit(answer["exitCode"])
`

// TestAttackBroker: a run inside has no key, and the parent run fetches for it. It does so by
// the same rules as for a command that was typed: whatever repository the question names, and
// however, no program of the workspace runs with the key or the network.
func TestAttackBroker(t *testing.T) {
	t.Parallel()
	callers, worlds := 0, 0
	everywhere(t, func(t *testing.T, a *attacked) {
		shims := a.home + "/.local/share/agent-tools/bin"
		put(t, shims, nil)
		a.own(a.home + "/.local")
		a.write("ask.py", asking)
		a.write("forge.py", forging)
		for _, hook := range []string{"reference-transaction", "post-merge"} {
			a.write("hostile-hooks/"+hook, a.program())
		}
		a.write(".venv/bin/ssh", a.program())
		a.write("included", "[core]\n\tgitProxy = "+a.payload+"\n")
		proxied := "[core]\n\tgitProxy = " + a.payload + "\n"
		nested := func(name, config string) {
			a.git(a.ws, "clone", "-q", a.url("up.git"), name)
			a.append(a.ws+"/"+name+"/.git/config", config)
		}
		nested("n", proxied)
		nested("hooked", "[core]\n\thooksPath = "+a.ws+"/hostile-hooks\n")
		nested("includes", "[include]\n\tpath = ../../included\n")
		a.git(a.ws, "worktree", "add", "-q", "tree", "-b", "tree")
		a.git(a.ws, "config", "extensions.worktreeConfig", "true")
		a.append(a.ws+"/.git/worktrees/tree/config.worktree", proxied)
		if err := os.Symlink("n", a.ws+"/Other"); err != nil {
			t.Fatal(err)
		}
		a.git(a.ws, "remote", "add", "far", "ssh://127.0.0.1:1/x")
		a.own(a.ws)
		path := "PATH=" + a.ws + "/.venv/bin:" + shims + ":/usr/local/bin:/usr/bin:/bin:" + bin
		token := func() string {
			cmd := exec.Command(filepath.Join(bin, "atip"), "delegate", "-o", "text", "--tools", "python,env,git,atip-exec")
			cmd.Dir, cmd.Env = a.ws, a.environ()
			out, err := a.bounded(cmd)
			if err != nil {
				t.Fatalf("delegate: %v: %s", err, out)
			}
			return "ATIP_DELEGATION=" + strings.TrimSpace(out)
		}()
		under := [][]string{{path, "CI=1"}, {path, token}, {path}}

		// That the parent run fetches, and holds what a fetch needs.
		asked := func(dir string, vars, words []string) (string, error) {
			line := append(append([]string{"--", "python3", "ask.py", dir, "env"}, vars...), "atip-exec", "--")
			switch {
			case len(a.extra) == 1:
				line = []string{"--", "python3", "forge.py", dir}
			case len(words) == 1:
				line[len(line)-1] = "-c"
			}
			return a.run(a.ws, append(line, words...)...)
		}
		for _, more := range under {
			a.commit("for the control")
			a.extra = more
			out, err := asked(".", nil, []string{"git", "fetch", "origin"})
			if err != nil || !strings.Contains(a.git(a.ws, "log", "-1", "--format=%s", "origin/main"), "for the control") {
				t.Errorf("%v: the parent run fetches nothing: %v\n%s", more[1:], err, out)
			}
		}
		if raw, _ := a.plain(a.home, "sh", "-c", "cat .local/state/atip-exec/audit/*.jsonl"); strings.Count(raw, `"asked_by"`) < len(under) {
			t.Errorf("the parent run has started nothing for the run inside:\n%.2000s", raw)
		}

		for i, row := range []struct {
			name, dir string
			vars      []string
			words     []string // of git, or one text
		}{
			{"-C", ".", nil, []string{"git", "-C", "n", "fetch", "origin"}},
			{"-C by a link and ..", ".", nil, []string{"git", "-C", ".venv/../Other", "fetch", "origin"}},
			{"-C by /proc", ".", nil, []string{"git", "-C", "/proc/self/cwd/n", "fetch", "origin"}},
			{"-C by a descriptor", ".", nil, []string{"git", "-C", "@fd:n", "fetch", "origin"}},
			{"-C twice", ".", nil, []string{"git", "-C", ".venv", "-C", "../n", "fetch", "origin"}},
			{"the directory", "n", nil, []string{"git", "fetch", "origin"}},
			{"--git-dir by /proc", ".", nil, []string{"git", "--git-dir=/proc/self/cwd/n/.git", "fetch", "origin"}},
			{"--git-dir by a descriptor", ".", nil, []string{"git", "--git-dir=@fd:n/.git", "fetch", "origin"}},
			{"GIT_DIR", ".", []string{"GIT_DIR=" + a.ws + "/n/.git"}, []string{"git", "fetch", "origin"}},
			{"GIT_DIR in the text", ".", nil, []string{"GIT_DIR=n/.git git fetch origin"}},
			{"cd in the text", ".", nil, []string{"cd n && git fetch origin"}},
			{"a descriptor in the text", ".", nil, []string{"exec 9<n/.git; git --git-dir=/proc/self/fd/9 fetch origin"}},
			{"settings of a work tree", ".", nil, []string{"git", "-C", "tree", "fetch", "origin"}},
			{"a file that is included", ".", nil, []string{"git", "-C", "includes", "fetch", "origin"}},
			{"hooks", ".", nil, []string{"git", "-C", "hooked", "fetch", "origin"}},
			{"a setting in the words", ".", nil, []string{"git", "-c", "core.gitProxy=" + a.payload, "fetch", "origin"}},
			{"a setting in variables", ".", []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.gitProxy", "GIT_CONFIG_VALUE_0=" + a.payload}, []string{"git", "fetch", "origin"}},
			{"GIT_PROXY_COMMAND", ".", []string{"GIT_PROXY_COMMAND=" + a.payload}, []string{"git", "fetch", "origin"}},
			{"GIT_SSH_COMMAND", ".", []string{"GIT_SSH_COMMAND=" + a.payload}, []string{"git", "fetch", "far"}},
			{"PATH", ".", nil, []string{"git", "fetch", "far"}},
			{"XDG_CONFIG_HOME", ".", []string{"XDG_CONFIG_HOME=" + a.ws + "/xdg"}, []string{"git", "fetch", "origin"}},
			{"HOME", ".", []string{"HOME=" + a.ws + "/fake"}, []string{"git", "fetch", "origin"}},
			{"a recursion", ".", nil, []string{"git", "fetch", "--recurse-submodules", "origin"}},
		} {
			// Each row at both tiers, once as root and once as a user.
			if (i+worlds&1+worlds>>1)%2 != 0 && os.Getenv("MORE_STAGES") == "" {
				continue
			}
			switch row.name {
			case "XDG_CONFIG_HOME", "HOME":
				a.write("xdg/git/config", proxied)
				a.write("fake/.gitconfig", proxied)
			case "a recursion":
				a.git(a.ws, "submodule", "add", "-q", a.url("up.git"), "sub")
				a.append(a.ws+"/.git/modules/sub/config", proxied)
			}
			a.extra = []string{path}
			if row.name == "hooks" || row.name == "a recursion" {
				a.commit(row.name)
			}
			words := row.words
			if len(words) == 1 {
				words = []string{"bash", "-c", words[0]}
			}
			// Plain git, as the program that asks would start it.
			out, err := a.plain(a.ws, "env", append([]string{path, "python3", "ask.py", row.dir, "env"}, append(row.vars[:len(row.vars):len(row.vars)], words...)...)...)
			if ran, rights := a.traces(); !ran || !strings.Contains(rights, "network key outside") {
				t.Errorf("%s: plain git: ran %v, %q (%v): the row proves nothing\n%s", row.name, ran, rights, err, out)
			}
			a.extra = under[callers%len(under)]
			callers++
			out, err = asked(row.dir, row.vars, row.words)
			if _, rights := a.traces(); rights != "" {
				t.Errorf("%s, %v: the program of the workspace had %s (%v)\n%s", row.name, a.extra[1:], rights, err, out)
			}
		}
		worlds++
	})
}
