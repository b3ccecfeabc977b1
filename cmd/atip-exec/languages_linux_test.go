package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/require"
)

// languages are the interpreters of Runfiles, with one set of functions in each.
var languages = []struct{ name, functions string }{
	{"bash", `
show() { printf '<%s>\n' "$@"; }
# @safe
safe() { echo x >written; }
unsafe() { echo x >written; }
fails() { echo before; exit 3; echo after; }
`},
	{"python3", `
# @shell python3
show() {
    import sys
    for a in sys.argv[1:]:
        print("<%s>" % a)
}
# @shell python3
typed(n: int, f: float = 1.5, on: bool = true, o: obj = {"a": [1]}, ...rest) {
    import json
    print(json.dumps([n + 1, f, on, o["a"], rest, GREETING], separators=(",", ":")))
}
# @safe
# @shell python3
safe() {
    open("written", "w")
}
# @shell python3
unsafe() {
    open("written", "w")
}
# @shell python3
fails() {
    import sys
    print("before")
    sys.exit(3)
}
`},
	{"node", `
# @shell node
show() {
    for (const a of process.argv.slice(1)) console.log("<" + a + ">");
}
# @shell node
typed(n: int, f: float = 1.5, on: bool = true, o: obj = {"a": [1]}, ...rest) {
    console.log(JSON.stringify([n + 1, f, on, o.a, rest, GREETING]));
}
# @safe
# @shell node
safe() {
    require("fs").writeFileSync("written", "x");
}
# @shell node
unsafe() {
    require("fs").writeFileSync("written", "x");
}
# @shell node
fails() {
    console.log("before");
    process.exit(3);
}
`},
	{"ruby", `
# @shell ruby
show() {
    ARGV.each { |a| puts "<#{a}>" }
}
# @shell ruby
typed(n: int, f: float = 1.5, on: bool = true, o: obj = {"a": [1]}, ...rest) {
    puts JSON.generate([n + 1, f, on, o["a"], rest, greeting])
}
# @safe
# @shell ruby
safe() {
    File.write("written", "x")
}
# @shell ruby
unsafe() {
    File.write("written", "x")
}
# @shell ruby
fails() {
    puts "before"
    exit 3
}
`},
	{"pwsh", `
# @shell pwsh
show() {
    foreach ($a in $args) { "<$a>" }
}
# @shell pwsh
typed(n: int, f: float = 1.5, on: bool = true, o: obj = {"a": [1]}, ...rest) {
    ConvertTo-Json -Compress @(($n + 1), $f, $on, $o.a, @($rest), $GREETING)
}
# @safe
# @shell pwsh
safe() {
    Set-Content -ErrorAction Stop written x
}
# @shell pwsh
unsafe() {
    Set-Content -ErrorAction Stop written x
}
# @shell pwsh
fails() {
    "before"
    exit 3
}
`},
}

// TestRunfileLanguages runs the same functions in each language: words arrive as they are,
// values have their types, @safe is held, and the status is the function's.
func TestRunfileLanguages(t *testing.T) {
	t.Parallel()
	words := []string{"$(touch hacked)", "`touch hacked`; touch hacked", "a\"b'c", "x\ny", "--flag", "", "#{x} %s \\n"}
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			_, err := exec.LookPath(l.name)
			require.Feature(t, l.name, err)
			w := newWorld(t)
			put(t, w.ws, map[string]string{"Runfile": "GREETING=it's \"$(touch hacked)\"\n" + l.functions + "through() { typed \"$@\"; }\n"})
			run := func(status int, args ...string) string {
				t.Helper()
				cmd := exec.Command(filepath.Join(bin, "atip"), append([]string{"run"}, args...)...)
				cmd.Dir, cmd.Env = w.ws, w.command().Env
				var stderr strings.Builder
				cmd.Stderr = &stderr
				out, _ := cmd.Output()
				if got := cmd.ProcessState.ExitCode(); got != status {
					t.Errorf("%q: exit %d, want %d: %s%s", args, got, status, out, stderr.String())
				}
				return string(out)
			}
			if got, want := run(0, append([]string{"show"}, words...)...), "<"+strings.Join(words, ">\n<")+">\n"; got != want {
				t.Errorf("words arrive as %q, not %q", got, want)
			}
			if strings.Contains(l.functions, "typed(") {
				const least = `[5,1.5,true,[1],[],"it's \"$(touch hacked)\""]` + "\n"
				if got := run(0, "typed", "4"); got != least {
					t.Errorf("%q, not %q", got, least)
				}
				if got := run(0, "through", "4"); got != least {
					t.Errorf("called from a shell function: %q, not %q", got, least)
				}
				if got, want := run(0, "typed", "4", "2.25", "false", `{"a":"$(touch hacked)"}`, "r 1", "r2"), `[5,2.25,false,"$(touch hacked)",["r 1","r2"],"it's \"$(touch hacked)\""]`+"\n"; got != want {
					t.Errorf("%q, not %q", got, want)
				}
				run(64, "typed")
				run(64, "typed", "x")
			}
			run(1, "safe")
			if _, err := os.Stat(filepath.Join(w.ws, "written")); err == nil {
				t.Error("@safe wrote")
			}
			run(0, "unsafe")
			if _, err := os.Stat(filepath.Join(w.ws, "written")); err != nil {
				t.Error("the control did not write")
			}
			if got := run(3, "fails"); got != "before\n" {
				t.Errorf("%q", got)
			}
			if _, err := os.Stat(filepath.Join(w.ws, "hacked")); err == nil {
				t.Error("a word ran")
			}
		})
	}
}
