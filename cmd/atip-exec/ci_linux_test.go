package main_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/atip-dev/atip-exec/internal/require"
	"go.yaml.in/yaml/v3"
)

// TestCIRecipes runs action.yml, ci/, .pre-commit-hooks.yaml, the Containerfile and the examples of
// docs/ci.md as the systems run them that they are for: with their shells, files and variables, on
// an archive of this tree's programs.
func TestCIRecipes(t *testing.T) {
	release := newCIRelease(t)
	tests := map[string]func(*testing.T){"github": release.testGithub, "gitlab": release.testGitlab, "buildkite": release.testBuildkite,
		"pre-commit": testPreCommit, "devcontainer": release.testDevcontainer, "image": release.testImage}
	for _, block := range regexp.MustCompile("(?m)^```[a-z]+ (.+)$").FindAllSubmatch(fileText(t, "../../docs/ci.md"), -1) {
		if tests[string(block[1])] == nil {
			t.Errorf("nothing here runs the block %q of docs/ci.md", block[1])
		}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

const ciPath = "/usr/local/bin:/usr/bin:/bin"

// anotherDigest is not that of the archive.
var anotherDigest = strings.Repeat("0", 64)

// ciRelease is one archive in a directory, named as scripts/release names it.
type ciRelease struct{ dir, version, sha256, url string }

func newCIRelease(t *testing.T) ciRelease {
	t.Helper()
	found := regexp.MustCompile(`(?m)^\tname="(.*)"$`).FindStringSubmatch(string(fileText(t, "../../scripts/release")))
	if found == nil {
		t.Fatal("scripts/release does not say how an archive is named")
	}
	r := ciRelease{dir: t.TempDir(), version: "9.8.7-rc.1"}
	r.url = "file://" + r.dir
	name := strings.NewReplacer("${version}", r.version, "${os}", "linux", "$arch", runtime.GOARCH).Replace(found[1])
	const pack = `set -e; mkdir "$2"; ln -s "$1/atip" "$1/atip-exec" "$1/atip-verify" "$3/LICENSE" "$2"; tar -chf - "$2"`
	archive, err := os.Create(r.dir + "/" + name + ".tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	// To deflate the programs, and to inflate them for each recipe, takes longer than all else here.
	stored, err := gzip.NewWriterLevel(io.MultiWriter(archive, sum), gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", pack, "pack", bin, name, absolute(t, "../.."))
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), stored, &stderr
	if err := errors.Join(cmd.Run(), stored.Close(), archive.Close()); err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	r.sha256 = fmt.Sprintf("%x", sum.Sum(nil))
	return r
}

// ciWorld has a project with a Makefile and one commit, outside of the temporary directories.
func ciWorld(t *testing.T) world {
	t.Helper()
	w := newWorldAtHome(t)
	const setup = `set -e; mkdir -p "$1"; cd "$1"; git init -q -b main .; printf 'test:\n\t@echo tests pass\n' >Makefile
git add .; git -c user.name=a -c user.email=a@example.invalid commit -q -m first`
	if status, out := w.ci(nil, "sh", "-c", setup, "setup", w.home+"/work/project"); status != 0 {
		t.Fatal(out)
	}
	w.ws = w.home + "/work/project"
	return w
}

// ci runs a program in the project and returns its status and its output as a log has it.
func (w world) ci(env []string, name string, args ...string) (int, string) {
	w.t.Helper()
	cmd := exec.Command("env", append([]string{"--", name}, args...)...) // looked up in the PATH of env
	cmd.Dir, cmd.Env = w.ws, append([]string{"HOME=" + w.home, "PATH=" + ciPath, "CI=true"}, env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// holds compares a text with what it must have, and with what it must not where "!" stands before.
func holds(t *testing.T, place, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		bad, not := strings.CutPrefix(want, "!")
		if strings.Contains(text, bad) == not {
			t.Errorf("%s: %q: want it there: %v\n%s", place, bad, !not, text)
		}
	}
}

func fileText(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// parse reads YAML, and so JSON.
func parse(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// ciExample is the block of docs/ci.md with that label.
func ciExample(t *testing.T, label string) []byte {
	t.Helper()
	found := regexp.MustCompile("(?ms)^```[a-z]+ " + label + "$(.*?)^```$").FindSubmatch(fileText(t, "../../docs/ci.md"))
	if found == nil {
		t.Fatalf("docs/ci.md has no block %q", label)
	}
	return found[1]
}

func variables(from map[string]string) (env []string) {
	for name, value := range from {
		env = append(env, name+"="+value)
	}
	return env
}

// githubStep is a step of a job, or of a composite action.
type githubStep struct {
	ID, If, Uses, Run, Shell string
	Env, With                map[string]string
}

// githubRunner keeps what a runner keeps between the steps of a job.
type githubRunner struct {
	world
	action struct {
		Inputs  map[string]struct{ Default string }
		Outputs map[string]struct{ Value string }
		Runs    struct{ Steps []githubStep }
	}
	temp    string
	path    []string // prepended by steps
	env     []string
	outputs map[string]string // of all steps
	steps   int
	failed  bool
	log     string
	summary string // of the last step
}

func newGithubRunner(t *testing.T) *githubRunner {
	t.Helper()
	r := &githubRunner{world: ciWorld(t), outputs: map[string]string{}}
	r.temp = r.home + "/work/_temp"
	parse(t, fileText(t, "../../action.yml"), &r.action)
	return r
}

// run is one step with a script: the runner puts it into a file, starts the shell that it finds in
// PATH, and reads the files of commands.
func (r *githubRunner) run(s githubStep) int {
	r.t.Helper()
	r.steps++
	if s.Shell == "bash" {
		s.Shell = "bash --noprofile --norc -eo pipefail {0}"
	}
	script := fmt.Sprintf("%s/step-%d", r.temp, r.steps)
	write(r.t, script, s.Run)
	env := append(slices.Concat(r.env, variables(s.Env)), "PATH="+strings.Join(append(slices.Clone(r.path), ciPath), ":"), "GITHUB_ACTIONS=true",
		"GITHUB_RUN_ID=1", "GITHUB_WORKSPACE="+r.ws, "RUNNER_TEMP="+r.temp, "GITHUB_ACTION_PATH="+absolute(r.t, "../.."))
	files := map[string]string{}
	for name, prefix := range map[string]string{"GITHUB_OUTPUT": "set_output_", "GITHUB_ENV": "set_env_", "GITHUB_PATH": "add_path_", "GITHUB_STEP_SUMMARY": "step_summary_"} {
		files[name] = r.temp + "/_runner_file_commands/" + prefix + strconv.Itoa(r.steps)
		write(r.t, files[name], "")
	}
	words := strings.Fields(strings.ReplaceAll(s.Shell, "{0}", script))
	status, log := r.ci(append(env, variables(files)...), words[0], words[1:]...)
	lines := func(name string) []string { return strings.Split(string(fileText(r.t, files[name])), "\n") }
	for _, line := range lines("GITHUB_OUTPUT") {
		name, value, _ := strings.Cut(line, "=")
		r.outputs[name] = value
	}
	for _, line := range lines("GITHUB_PATH") {
		if line != "" {
			r.path = slices.Insert(r.path, 0, line)
		}
	}
	for _, line := range lines("GITHUB_ENV") {
		if line != "" {
			r.env = append(r.env, line)
		}
	}
	r.log, r.summary, r.failed = r.log+log, strings.Join(lines("GITHUB_STEP_SUMMARY"), "\n"), r.failed || status != 0
	return status
}

var githubInput = regexp.MustCompile(`\$\{\{ inputs\.([a-z0-9-]+) \}\}`)

// use runs the composite action.
func (r *githubRunner) use(with map[string]string) int {
	r.t.Helper()
	value := func(name string) string {
		input, known := r.action.Inputs[name]
		if !known {
			r.t.Fatalf("action.yml has no input %q", name)
		}
		if v, set := with[name]; set {
			return v
		}
		return input.Default
	}
	for name := range with {
		value(name)
	}
	for _, s := range r.action.Runs.Steps {
		condition, known := map[string]bool{"inputs.report != 'true'": value("report") != "true", "inputs.report == 'true'": value("report") == "true"}[s.If]
		// An expression in the script itself would let a value be read as commands.
		if !known || strings.Contains(s.Run, "${{") || s.Shell != "bash" {
			r.t.Fatalf("a step of action.yml has an unknown condition, an expression in its script, or another shell: %+v", s)
		}
		if !condition {
			continue
		}
		s.Env = maps.Clone(s.Env)
		for name, v := range s.Env {
			s.Env[name] = githubInput.ReplaceAllStringFunc(v, func(found string) string { return value(githubInput.FindStringSubmatch(found)[1]) })
		}
		if status := r.run(s); status != 0 {
			return status
		}
	}
	return 0
}

const wrapped = "atip-exec script -e {0}"

// job runs the job of docs/ci.md, with one more step before its last one.
func (r *githubRunner) job(install map[string]string, extra string) {
	r.t.Helper()
	var doc struct {
		Jobs map[string]struct {
			Defaults struct{ Run githubStep }
			Steps    []githubStep
		}
	}
	parse(r.t, ciExample(r.t, "github"), &doc)
	job := doc.Jobs["test"]
	if job.Defaults.Run.Shell != wrapped {
		r.t.Errorf("the shell of docs/ci.md is %q", job.Defaults.Run.Shell)
	}
	for _, s := range slices.Insert(job.Steps, len(job.Steps)-1, githubStep{Run: extra}) {
		switch {
		case r.failed && s.If != "always()" || strings.HasPrefix(s.Uses, "actions/checkout@"):
		case s.Uses == "":
			r.run(githubStep{Run: s.Run, Shell: wrapped})
		case s.With["report"] == "":
			maps.Copy(s.With, install)
			r.use(s.With)
		default:
			r.use(s.With)
		}
	}
}

func (release ciRelease) testGithub(t *testing.T) {
	good := map[string]string{"version": release.version, "sha256": release.sha256, "from": release.url}
	t.Run("allowed", func(t *testing.T) {
		r := newGithubRunner(t)
		r.job(good, "git status --short")
		holds(t, "log", r.log, "tests pass", "!::error")
		holds(t, "summary", r.summary, "3 commands, 0 refused, 0 failed")
		holds(t, "SARIF", string(fileText(t, r.outputs["sarif"])), `"version": "2.1.0"`)
		holds(t, "page", string(fileText(t, r.outputs["page"])), "The chain holds", "<p>3 commands, ")
		if r.failed || len(r.outputs["commit"]) != 40 || r.action.Outputs["sarif"].Value != "${{ steps."+r.action.Runs.Steps[2].ID+".outputs.sarif }}" || r.action.Outputs["page"].Value != "${{ steps."+r.action.Runs.Steps[2].ID+".outputs.page }}" {
			t.Errorf("failed: %v, outputs %q", r.failed, r.outputs)
		}
	})
	t.Run("refused", func(t *testing.T) {
		r := newGithubRunner(t)
		r.job(good, "echo before\ngit push --force origin main\n")
		holds(t, "log", r.log, "\n::error title=atip-exec E2010::approval required: git push --force origin main ", "builtin/destructive", "!\nbefore\n")
		holds(t, "summary", r.summary, "3 commands, 1 refused, 0 failed", "| E2010 | builtin/destructive")
		if !r.failed {
			t.Error("the job did not fail")
		}
	})
	t.Run("files of the runner", func(t *testing.T) {
		r := newGithubRunner(t)
		r.use(good)
		for _, line := range []string{`echo x=1 >>"$GITHUB_ENV"`, `echo /tmp >>"$GITHUB_PATH"`, `echo x >"$RUNNER_TEMP/step-1"`, `cp Makefile "` + strings.Join(r.path, "") + `/atip"`} {
			before := len(r.env) + len(r.path)
			if status := r.run(githubStep{Run: line, Shell: wrapped}); status != 77 || len(r.env)+len(r.path) != before {
				t.Errorf("%s: exit %d", line, status)
			}
			// The same is possible without atip-exec. The programs themselves are left as they are.
			if status := r.run(githubStep{Run: strings.ReplaceAll(line, "/atip\"", "/atip.copy\""), Shell: "bash"}); status != 0 {
				t.Errorf("%s: exit %d without atip-exec", line, status)
			}
		}
		if status := r.run(githubStep{Run: `echo done >>"$GITHUB_STEP_SUMMARY"`, Shell: wrapped}); status != 0 || r.summary != "done\n" {
			t.Errorf("exit %d, summary %q", status, r.summary)
		}
		if status := r.use(map[string]string{"report": "true", "fail-on": "refused"}); status == 0 {
			t.Error("the report of a job with refusals did not fail")
		}
	})
	for _, bad := range []struct{ input, value, message string }{
		{"sha256", anotherDigest, "which sha256 does not list"},
		{"sha256", "", "sha256 is empty"},
		{"sha256", "*", "is not a digest"},
		{"version", "", "is not a release"},
		{"version", "../1", "is not a release"},
		{"version", "1.0.0", "has no atip-exec_1.0.0_linux_"},
		{"from", "http://example.invalid", "must begin with https://"},
	} {
		r := newGithubRunner(t)
		with := maps.Clone(good)
		with[bad.input] = bad.value
		status := r.use(with)
		holds(t, bad.input, r.log, "::error title=atip-exec was not installed::", bad.message)
		if installed, err := filepath.Glob(r.temp + "/*/bin"); status == 0 || err != nil || len(installed)+len(r.path) > 0 {
			t.Errorf("%s %q: exit %d, installed %v, PATH %v, %v", bad.input, bad.value, status, installed, r.path, err)
		}
		if status := r.run(githubStep{Run: "echo ran", Shell: wrapped}); status != 127 {
			t.Errorf("%s %q: a step ended with %d", bad.input, bad.value, status)
		}
	}
	for _, bad := range []struct{ there, policy, message string }{
		{"", `{"version":1,"rulez":[]}`, `unknown key "rulez"`},
		{`{"version":1}`, `{"version":1,"profile":"ci"}`, "is another policy"},
		{"stub", `{"version":1}`, "policy.json is not read"}, // as where HOME does not count; for the programs of the tests it does
	} {
		r := newGithubRunner(t)
		r.path = []string{bin}
		if bad.there == "stub" {
			r.path = []string{r.home + "/stub"}
			write(t, r.home+"/stub/atip", "#!/bin/sh\necho builtin: good\n")
		} else if bad.there != "" {
			r.policy(bad.there)
		}
		step := r.action.Runs.Steps[1]
		step.Env = map[string]string{"POLICY": bad.policy}
		if r.run(step) == 0 {
			t.Errorf("policy %s: the action did not fail", bad.policy)
		}
		holds(t, bad.policy, r.log, bad.message)
	}
}

func (release ciRelease) testGitlab(t *testing.T) {
	type job struct {
		Extends      string
		Variables    map[string]string
		BeforeScript []string `yaml:"before_script"`
		Script       []string
		AfterScript  []string `yaml:"after_script"`
		Artifacts    struct {
			When    string
			Paths   []string
			Reports struct{ JUnit string }
		}
	}
	var template map[string]job
	var doc struct{ Test job }
	parse(t, fileText(t, "../../ci/gitlab.yml"), &template)
	parse(t, ciExample(t, "gitlab"), &doc)
	base := template[doc.Test.Extends]
	if base.Artifacts.When != "always" || len(base.Artifacts.Paths) != 1 {
		t.Error("the report is not kept for a job that failed")
	}
	for _, try := range []struct {
		sha256, policy, line string
		status               int
		log, report          []string
	}{
		{sha256: release.sha256, line: "true", log: []string{"tests pass", "\n1\n"}, report: []string{`tests="2" failures="0"`}},
		{sha256: release.sha256, line: "atip-exec -- git push --force origin main", status: 77, log: []string{`"code":"E2010"`}, report: []string{`tests="3" failures="1"`, "builtin/destructive"}},
		{sha256: release.sha256, policy: `{"version":1,"rules":[{"id":"no-make","decision":"deny","when":{"tool":"make"}}]}`, status: 77, log: []string{"user/no-make", "!tests pass"}},
		{sha256: release.sha256, policy: `{"version":2}`, status: 1, log: []string{"!tests pass"}},
		{sha256: anotherDigest, status: 1, log: []string{"FAILED", "!tests pass"}},
		{status: 1, log: []string{"!tests pass"}},
	} {
		w := ciWorld(t)
		vars := maps.Clone(base.Variables)
		maps.Copy(vars, doc.Test.Variables)
		maps.Copy(vars, map[string]string{"ATIP_RELEASE": release.version, "ATIP_ARCH": runtime.GOARCH, "ATIP_SHA256": try.sha256, "ATIP_FROM": release.url, "ATIP_POLICY": try.policy, "CI_JOB_ID": "17"})
		status, log := w.ci(variables(vars), "bash", "-c", "set -eo pipefail\n"+strings.Join(append(slices.Concat(base.BeforeScript, doc.Test.Script), try.line, "echo last line"), "\n"))
		if status != try.status || strings.Contains(log, "\nlast line") != (status == 0) {
			t.Errorf("%+v: exit %d: %s", try, status, log)
		}
		holds(t, "log", log, try.log...)
		w.ci(variables(vars), "bash", "-c", "set -eo pipefail\n"+strings.Join(base.AfterScript, "\n"))
		if try.report != nil {
			holds(t, "report", string(fileText(t, filepath.Join(w.ws, base.Artifacts.Reports.JUnit))), try.report...)
			for _, page := range base.Artifacts.Paths {
				holds(t, "page", string(fileText(t, filepath.Join(w.ws, page))), "The chain holds")
			}
		}
	}
}

func (release ciRelease) testBuildkite(t *testing.T) {
	w, root := ciWorld(t), t.TempDir()
	// The lines of the documentation, below another root.
	setup := regexp.MustCompile(`VERSION=\S+ SHA256=\S+`).ReplaceAllString(string(ciExample(t, "buildkite")), strings.Join([]string{"VERSION=" + release.version, "SHA256=" + release.sha256, "FROM=" + release.url, "PREFIX=/usr/local"}, " "))
	setup = regexp.MustCompile(`([\s>=])(/usr/local|/etc/)`).ReplaceAllString(setup, "${1}"+root+"${2}")
	write(t, root+"/etc/buildkite-agent/hooks/.keep", "")
	write(t, root+"/buildkite-agent", "#!/bin/sh\n{ echo \"$@\"; cat; } >\"$HOME/annotation\"\n")
	cmd := exec.Command("sh", "-ec", setup)
	cmd.Dir, cmd.Env = "../..", []string{"PATH=" + ciPath}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	line := regexp.MustCompile(`(?m)^shell="(.*)"$`).FindSubmatch(fileText(t, root+"/etc/buildkite-agent/buildkite-agent.cfg"))
	shell := strings.Fields(root + string(line[1]))
	env := []string{"PATH=" + root + ":" + root + "/usr/local/bin:" + ciPath, "BUILDKITE=true", "BUILDKITE_JOB_ID=j1"}
	_, exported := w.ci(env, "bash", "-c", `. "$1"; env`, "hook", root+"/etc/buildkite-agent/hooks/environment")
	env = append(env, regexp.MustCompile(`(?m)^ATIP_JOB_BEGAN=\d+$`).FindString(exported))
	for _, try := range []struct {
		command, log, annotation string
		status                   int
	}{
		{"make test\ngit status --short", "tests pass", "--style success\n**atip-exec**: 1 commands, 0 refused", 0},
		{"trap 'kill -- $$' INT TERM QUIT; make test", "tests pass", "--style success\n**atip-exec**: 2 commands", 0}, // as older agents send it
		{"false\necho later", "!later", "--style warning\n**atip-exec**: 3 commands, 0 refused, 1 failed", 1},
		{"echo later\ngit push --force origin main", `"code":"E2010"`, "| E2010 | builtin/destructive", 77},
	} {
		status, log := w.ci(env, shell[0], append(slices.Clone(shell[1:]), try.command)...)
		holds(t, try.command, log, try.log, "!later\n")
		hook, out := w.ci(env, root+"/etc/buildkite-agent/hooks/pre-exit")
		if status != try.status || hook != 0 {
			t.Errorf("%q: exit %d, of the hook %d: %s%s", try.command, status, hook, log, out)
		}
		holds(t, "annotation", string(fileText(t, w.home+"/annotation")), "annotate --context atip-exec-j1 ", try.annotation)
	}
}

func testPreCommit(t *testing.T) {
	type hook struct{ ID, Entry, Language, Files string }
	var hooks []hook
	var doc struct{ Repos []struct{ Hooks []hook } }
	parse(t, fileText(t, "../../.pre-commit-hooks.yaml"), &hooks)
	parse(t, ciExample(t, "pre-commit"), &doc)
	words := strings.Fields(hooks[0].Entry)
	if _, err := os.Stat("../../cmd/" + words[0]); err != nil || hooks[0].ID != doc.Repos[0].Hooks[0].ID || hooks[0].Language != "golang" {
		t.Errorf("%+v is not the hook of docs/ci.md, or `go install ./...` does not build it: %v", hooks[0], err)
	}
	w := ciWorld(t)
	for name, try := range map[string]struct {
		text    string
		checked bool
		status  int
	}{
		".agent-tools/policy.json":          {`{"version":1,"rules":[]}`, true, 0},
		"sub/.agent-tools/policy/own.json":  {"{\"version\":1,\n\"rulez\":[]}", true, 78},
		"policy.json":                       {"?", false, 78},
		".agent-tools/policy/sub/deep.json": {"?", false, 78},
	} {
		write(t, filepath.Join(w.ws, name), try.text)
		status, out := w.ci([]string{"PATH=" + bin + ":" + ciPath}, words[0], append(slices.Clone(words[1:]), name)...)
		if regexp.MustCompile(hooks[0].Files).MatchString(name) != try.checked || status != try.status || status != 0 && !strings.Contains(out, name+":") {
			t.Errorf("%s: exit %d: %s", name, status, out)
		}
	}
}

func (release ciRelease) testDevcontainer(t *testing.T) {
	const dir = "../../ci/features/atip-exec"
	var feature struct {
		ID      string
		Options map[string]struct{ Default string }
	}
	var doc struct{ Features map[string]map[string]string }
	parse(t, fileText(t, dir+"/devcontainer-feature.json"), &feature)
	parse(t, ciExample(t, "devcontainer"), &doc)
	set := doc.Features["ghcr.io/atip-dev/atip-exec/"+feature.ID+":1"]
	if feature.ID != filepath.Base(dir) || set == nil {
		t.Errorf("docs/ci.md names another feature than %q", feature.ID)
	}
	maps.Copy(set, map[string]string{"version": release.version, "from": release.url})
	w := ciWorld(t)
	for sums, want := range map[string]int{anotherDigest + " " + release.sha256: 0, anotherDigest: 1} {
		prefix := t.TempDir()
		set["sha256"] = sums
		env := []string{"PREFIX=" + prefix}
		for name, value := range set {
			if _, known := feature.Options[name]; !known {
				t.Errorf("the feature has no option %q", name)
			}
			env = append(env, strings.ToUpper(name)+"="+value) // as the specification of features says
		}
		status, out := w.ci(env, absolute(t, dir+"/install.sh"))
		if files, err := os.ReadDir(prefix); status != want || (len(files) > 0) != (want == 0) || err != nil {
			t.Errorf("sha256 %q: exit %d, %v, %v: %s", sums, status, files, err, out)
		}
		if want == 0 {
			if status, out := w.ci(nil, prefix+"/bin/atip-exec", "--", "make", "test"); status != 0 || out != "tests pass\n" {
				t.Errorf("exit %d: %s", status, out)
			}
		}
	}
}

// testImage follows the Containerfile and starts its programs, as the user that it names, with
// only the image around them.
func (release ciRelease) testImage(t *testing.T) {
	stages, image, user, entry := map[string]string{}, "", "", ""
	text := strings.NewReplacer("${VERSION}", release.version, "${TARGETARCH}", runtime.GOARCH).Replace(string(fileText(t, "../../Containerfile")))
	text = regexp.MustCompile(`(?m)^#.*\n|^ARG .*\n|^\n`).ReplaceAllString(text, "")
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		words := strings.Fields(line)
		switch {
		case words[0] == "FROM" && words[1] == "scratch":
			image, user = t.TempDir(), ""
			stages["--from="+words[len(words)-1]] = image
		case words[0] == "ADD": // an archive is unpacked
			if out, err := exec.Command("tar", "-xzf", filepath.Join(release.dir, words[1]), "-C", image+words[2]).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", line, err, out)
			}
		case words[0] == "COPY" && words[1] == "<<EOF":
			var file string
			file, text, _ = strings.Cut(text, "EOF\n")
			write(t, image+words[2], file)
		case words[0] == "COPY":
			write(t, image+words[3], string(fileText(t, stages[words[1]]+words[2])))
		case words[0] == "USER":
			user = words[1]
		case words[0] == "ENTRYPOINT":
			entry = strings.Trim(words[1], `[]"`)
		default:
			t.Fatalf("this test does not know %q", line)
		}
	}
	id, err := strconv.Atoi(strings.Split(user, ":")[0])
	if err != nil || id == 0 || os.Chmod(image, 0o755) != nil {
		t.Fatalf("USER is %q", user)
	}
	for _, words := range [][]string{{entry, "version", "-o", "json"}, {"/usr/local/bin/atip", "policy", "check", "-o", "json"}} {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/local/bin"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: image, Cloneflags: syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: id, HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{ContainerID: id, HostID: os.Getgid(), Size: 1}}}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			require.Feature(t, "userns", err)
		}
		if err != nil || !json.Valid(out) {
			t.Errorf("%v in the image: %v: %s", words, err, out)
		}
	}
}
