package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOrdinaryCommands runs what developers run, in a workspace, without network.
func TestOrdinaryCommands(t *testing.T) {
	needLandlock(t, scopeABI)
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		goroot = []byte("/usr/local/go")
	}
	bin := strings.TrimSpace(string(goroot)) + "/bin"
	tiers := []Tier{T2}
	if try("").Namespaces {
		tiers = append(tiers, T3)
	}
	for name, text := range map[string]string{
		"git": `git init -q . && git config user.email a@b && git config user.name a && echo x >f && git add f &&
			git commit -qm m && git status --short && git checkout -q -b b && git worktree list >/dev/null && git log --oneline | wc -l`,
		// Not a build: the private cache is cold, and compiling the runtime takes seconds.
		"go": `mkdir m && cd m && printf 'module m\ngo 1.20\n' >go.mod && printf 'package main\nfunc main(){println("hi")}\n' >main.go &&
			export GOTOOLCHAIN=local && go list ./... && gofmt -l . && go mod edit -json >/dev/null && ls $GOCACHE >/dev/null`,
		"python": `python3 -c 'import tempfile,subprocess,json,ssl; open("x","w").write("y"); tempfile.NamedTemporaryFile(); subprocess.run(["true"],check=True)'`,
		"tar":    `mkdir a && echo 1 >a/1 && tar czf a.tgz a && rm -r a && tar xzf a.tgz && cat a/1`,
		"make":   `printf 'all:\n\techo made\n' >Makefile && make`,
		"shell":  `for i in 1 2 3; do echo $i; done | sort -r | head -1; cat <(echo sub); x=$(mktemp) && echo >$x && rm $x; cat <<<here >/dev/null; echo err >/dev/stderr`,
		"find":   `find . -type f | xargs -r ls -l >/dev/null; sed -i s/a/b/ mine; grep -r x . || true; cp mine c; mv c d; mkdir -p q/w; rm -rf q; touch -d 2020-01-01 d; chmod 600 d`,
		"gcc":    `echo 'int main(){return 0;}' >a.c && gcc -o a a.c && ./a`,
	} {
		tool := name
		if tool == "shell" {
			tool = "bash"
		}
		if tool == "python" {
			tool = "python3"
		}
		if _, err := exec.LookPath(tool); err != nil {
			t.Logf("%s is not installed", tool)
			continue
		}
		for _, tier := range tiers {
			ordinary(t, name, text, bin, tier)
		}
	}
}

func ordinary(t *testing.T, name, text, bin string, tier Tier) {
	w := newWorld(t)
	path := filepath.SplitList(os.Getenv("PATH"))
	p := w.profile(t, func(in *Input) { in.PathDirs, in.Families, in.Policy.Tier = append(path, bin), []string{"go"}, tier })
	j := w.shell(p, "set -e\ncd "+w.ws+"\n"+text)
	j.Env = append(j.Env, "PATH="+strings.Join(path, ":")+":"+bin, "HOME="+w.home)
	for k, v := range p.Env {
		j.Env = append(j.Env, k+"="+v)
	}
	if r := confined(t, j); r.Exit.Code != 0 || r.Err != "" {
		t.Errorf("%s at %s: status %d %s\n%s", name, r.Receipt.Tier, r.Exit.Code, r.Err, r.Out)
	}
}
