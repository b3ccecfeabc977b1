package main_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestConsoleExamples runs every "$ …" line of the console blocks in README.md and
// docs/, and looks for the lines printed below it. "…" stands for anything.
func TestConsoleExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range consoleBlocks(string(text)) {
			w, port := exampleWorld(t), freePort(t)
			for _, step := range block {
				w.example(filepath.Base(file), step.at(port))
				ran++
			}
		}
	}
	if ran < 6 {
		t.Errorf("only %d examples were found", ran)
	}
}

type example struct {
	line string
	want []string
}

// examplePort is that of the servers in examples. Tests put a free one in its place.
const examplePort = "8440"

func (e example) at(port string) example {
	out := example{line: strings.ReplaceAll(e.line, examplePort, port)}
	for _, want := range e.want {
		out.want = append(out.want, strings.ReplaceAll(want, examplePort, port))
	}
	return out
}

// lastPort counts the ports that tests of this process have asked for.
var lastPort atomic.Int32

// freePort is a port that a server started later can listen on. It lies below those that the kernel hands
// out by itself, so that no other test gets it in between.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		port := strconv.Itoa(20000 + (os.Getpid()*61+int(lastPort.Add(1)))%12000)
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// serve starts a line that ends with " &", until the test ends, and waits for the port in it.
func (w world) serve(line string, env []string) {
	w.t.Helper()
	cmd := exec.Command("bash", "-c", "exec "+line)
	cmd.Dir, cmd.Env = w.ws, env
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	port := line[strings.LastIndexByte(line, ' ')+1:]
	for range 3000 {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			c.Close()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	w.t.Fatalf("%q does not answer at port %s", line, port)
}

func consoleBlocks(text string) [][]example {
	var blocks [][]example
	for {
		_, rest, ok := strings.Cut(text, "```console\n")
		if !ok {
			return blocks
		}
		body, after, _ := strings.Cut(rest, "```")
		text = after
		var block []example
		for _, line := range strings.Split(body, "\n") {
			if cmd, ok := strings.CutPrefix(line, "$ "); ok {
				block = append(block, example{line: cmd})
			} else if strings.TrimSpace(line) != "" && len(block) > 0 {
				last := &block[len(block)-1]
				last.want = append(last.want, line)
			}
		}
		blocks = append(blocks, block)
	}
}

// exampleWorld is the repository that the examples speak of.
func exampleWorld(t *testing.T) world {
	w := newWorld(t)
	stubs := filepath.Join(w.home, "stubs")
	const setup = `set -e
mkdir -p "$HOME/stubs"
printf '#!/bin/sh\ntouch "$HOME/ran"\n' >"$HOME/stubs/gh"
chmod 755 "$HOME/stubs/gh"
printf 'hello\n' >README.md
git add README.md
git -c user.name=a -c user.email=a@example.invalid commit -q -m first
printf 'more\n' >>README.md
printf 'token: ghp_%s%s\n' a1B2c3D4e5F6g7H8i9 J0k1L2m3N4o5P6q7R8 >.git/notes
cp .git/notes "$HOME/notes.txt"
`
	cmd := exec.Command("bash", "-c", setup)
	cmd.Dir, cmd.Env = w.ws, append(w.command().Env, "PATH=/usr/bin:/bin")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.path = stubs
	return w
}

func (w world) example(file string, e example) {
	w.t.Helper()
	env := []string{"HOME=" + w.home, "PATH=" + w.path + ":/usr/local/bin:/usr/bin:/bin:" + bin, "ATIP_EXEC_OUTPUT=text"}
	if line, ok := strings.CutSuffix(e.line, " &"); ok {
		w.serve(line, env)
		return
	}
	cmd := exec.Command("bash", "-c", e.line)
	cmd.Dir, cmd.Env = w.ws, env
	out, err := cmd.CombinedOutput()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() == 64 || exit.ExitCode() == 70 || exit.ExitCode() == 78) {
		w.t.Errorf("%s: %q: %v: %s", file, e.line, err, out)
	}
	for _, want := range e.want {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
		pattern = regexp.MustCompile(`:[0-9a-f]{6}\\\]`).ReplaceAllString(pattern, `:[0-9a-f]{6}\]`)
		if !regexp.MustCompile("(?m)^" + pattern + "$").Match(out) {
			w.t.Errorf("%s: %q does not print %q, but\n%s", file, e.line, want, out)
		}
	}
}

// TestThreatModelNamesItsTests holds docs/threat-model.md, docs/seeds.md, docs/must-hold.md
// and docs/wiring-tests.md to their word: each
// test and script that they name must be there.
func TestThreatModelNamesItsTests(t *testing.T) {
	var sources strings.Builder
	for _, pattern := range []string{"../../*/*_test.go", "../../*/*/*_test.go", "../../*/*/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(raw)
		}
	}
	for _, page := range []string{"threat-model.md", "seeds.md", "must-hold.md", "wiring-tests.md"} {
		text, err := os.ReadFile(filepath.Join("../../docs", page))
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(text), -1)
		if len(names) < 10 {
			t.Fatalf("%s: only %d tests are named", page, len(names))
		}
		for _, name := range names {
			if !strings.Contains(sources.String(), "func "+name[1]+"(") {
				t.Errorf("docs/%s names %s, which is not there", page, name[1])
			}
		}
		for _, script := range regexp.MustCompile("`([a-z_]+\\.txt)`").FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join("testdata", script[1])); err != nil {
				t.Error(err)
			}
		}
	}
}
