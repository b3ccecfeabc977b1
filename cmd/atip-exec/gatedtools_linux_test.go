package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGatedTools: tools that start many helpers give the same result where each start is decided as they
// give outside.
func TestGatedTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const git = `export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000' GIT_CONFIG_NOSYSTEM=1
`
	for _, row := range []struct{ name, needs, setup, script, shows string }{
		{"submodule", "git", git + `git init -q -b main up; (cd up; echo 1 >f; git add f; git commit -qm 1)
git init -q -b main inner; (cd inner; echo 2 >g; git add g; git commit -qm 2)
(cd up; git -c protocol.file.allow=always submodule --quiet add ../inner inner; git commit -qm sub)
git clone -q up all; cd all; git submodule --quiet init`,
			git + `cd all; git -c protocol.file.allow=always submodule update --recursive 2>&1 | sed "s,$PWD,ALL,g"
git submodule status; cat inner/g; git submodule foreach --quiet 'echo $name $sha1'; git status --porcelain`, "inner"},
		{"java", "javac", `mkdir -p src/p; printf 'package p; public class Main { public static void main(String[] a) throws Exception { System.out.println(new Other().text() + new String(new ProcessBuilder("/bin/echo", "started").start().getInputStream().readAllBytes())); } }' >src/p/Main.java
printf 'package p; class Other { String text() { return "built " + java.util.stream.IntStream.range(0, 5).sum() + " "; } }' >src/p/Other.java`,
			"javac -d out src/p/*.java && jar cfe app.jar p.Main -C out . && java -jar app.jar && find out -type f | sort", "built 10 started"},
	} {
		if _, err := exec.LookPath(row.needs); err != nil {
			t.Log(err)
			continue
		}
		results := map[string]string{}
		for _, way := range []string{"plain", "T2", "T3"} {
			dir := filepath.Join(w.ws, row.name, way, "w")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			setup := exec.Command("sh", "-ec", row.setup)
			setup.Dir, setup.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home}
			if out, err := setup.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v %s", row.name, err, out)
			}
			put(t, dir, map[string]string{"do.sh": row.script})
			w.policy(`{"version":1,"sandbox":{"tier":"` + way + `"},"rules":[` + denyFactor + `]}`)
			cmd := w.command("--", "sh", "do.sh")
			if way == "plain" {
				cmd = exec.Command("sh", "do.sh")
				cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home}
			}
			cmd.Dir = dir
			out, err := cmd.Output()
			if err != nil || !strings.Contains(string(out), row.shows) {
				t.Errorf("%s, %s: %v %s", row.name, way, err, out)
			}
			results[way] = string(out)
		}
		if results["T2"] != results["plain"] || results["T3"] != results["plain"] {
			t.Errorf("%s: %q", row.name, results)
		}
	}
}
