package main_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The suite "attacks" holds what was done with commands that are all allowed without a
// question: code of the workspace got the network or a credential. Each act is done here by
// plain git as well, in the same scratch world, where it works.

// attacked is a clone with an upstream on this machine, and a program of the workspace that
// leaves traces of what it could do.
type attacked struct {
	world
	dir     string
	port    string
	uid     int
	payload string   // in the workspace
	extra   []string // of the environment under us
}

const nobodyID = 65534

// newAttacked makes the world below a directory that uid can enter. Everything in it is made
// by that user, and nothing else on this machine can be written by it.
func newAttacked(t *testing.T, tier string, uid int) *attacked {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "atip-exec-attack-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	a := &attacked{dir: dir, uid: uid, world: world{t: t, home: dir + "/home", ws: dir + "/ws"}}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	put(t, a.home, map[string]string{".ssh/id_ed25519": "synthetic", ".gitconfig": "[user]\n\tname = x\n\temail = x@example.invalid\n[init]\n\tdefaultBranch = main\n",
		".config/agent-tools/policy.json": `{"version":1,"sandbox":{"tier":"` + tier + `"}}`})
	if err := probed(a.home, uid); err != nil {
		t.Fatal(err)
	}
	a.own(a.home)
	// Without git's examples of hooks, which are most of the files of a small repository.
	if err := errors.Join(os.MkdirAll(dir+"/template/hooks", 0o755), os.MkdirAll(dir+"/template/info", 0o755)); err != nil {
		t.Fatal(err)
	}
	a.git(dir, "init", "-q", "--bare", "up.git")
	a.git(dir, "init", "-q", "up")
	a.commit("one")
	a.serve()
	a.git(dir, "clone", "-q", a.url("up.git"), "ws")
	a.payload = a.ws + "/evil"
	a.write("evil", a.program())
	return a
}

func (a *attacked) url(name string) string { return fmt.Sprintf("git://127.0.0.1:%s/%s", a.port, name) }

// program says in files of the workspace that it ran, and with which rights.
func (a *attacked) program() string {
	return fmt.Sprintf("#!/bin/bash\nexec 2>/dev/null\necho ran >>%[1]s/ran\n(: </dev/tcp/127.0.0.1/%[2]s) && echo network >>%[1]s/rights\n: <%[3]s/.ssh/id_ed25519 && echo key >>%[1]s/rights\n"+
		"echo x >%[3]s/outside && echo outside >>%[1]s/rights\nexit 1\n", a.ws, a.port, a.home)
}

// serve is git's own server, on the loopback of this machine: this process listens, so that no other
// program can take the port, and hands each connection to a server of its own.
func (a *attacked) serve() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		a.t.Fatal(err)
	}
	_, a.port, _ = net.SplitHostPort(l.Addr().String())
	ctx, stop := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				conn, err := c.(*net.TCPConn).File()
				c.Close()
				if err != nil {
					return
				}
				defer conn.Close()
				cmd := exec.CommandContext(ctx, "git", "daemon", "--inetd", "--export-all", "--enable=receive-pack", "--base-path="+a.dir, a.dir)
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential()}
				cmd.Env = []string{"HOME=" + a.home, "PATH=/usr/bin:/bin"}
				cmd.Stdin, cmd.Stdout = conn, conn
				_ = cmd.Run()
			})
		}
	})
	a.t.Cleanup(func() { l.Close(); stop(); served.Wait() })
}

// credential is nil for a normal user, who cannot be anybody else.
func (a *attacked) credential() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.uid)}
}

func (a *attacked) own(dir string) {
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error { return os.Lchown(path, a.uid, a.uid) })
}

// write puts an executable file into the workspace.
func (a *attacked) write(name, text string) {
	a.t.Helper()
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.ws, name)
	}
	put(a.t, filepath.Dir(path), map[string]string{filepath.Base(path): text})
	if err := os.Chmod(path, 0o755); err != nil {
		a.t.Fatal(err)
	}
	a.own(a.ws)
}

// commit changes the upstream, so that there is something to fetch.
func (a *attacked) commit(message string) {
	put(a.t, a.dir+"/up", map[string]string{"file": message + time.Now().String()})
	a.own(a.dir + "/up")
	a.git(a.dir+"/up", "add", "file")
	a.git(a.dir+"/up", "commit", "-q", "-m", message)
	a.git(a.dir+"/up", "push", "-q", "../up.git", "main")
}

// git is plain git, which has to succeed.
func (a *attacked) git(dir string, words ...string) string {
	a.t.Helper()
	out, err := a.plain(dir, "git", append([]string{"-c", "protocol.file.allow=always", "-c", "init.templateDir=" + a.dir + "/template"}, words...)...)
	if err != nil {
		a.t.Fatalf("git %v: %v: %s", words, err, out)
	}
	return out
}

func (a *attacked) environ() []string {
	return []string{"HOME=" + a.home, "PATH=" + a.path + "/usr/local/bin:/usr/bin:/bin", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1"}
}

func (a *attacked) bounded(cmd *exec.Cmd) (string, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential()}
	cmd.WaitDelay = time.Second
	timer := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// plain is a command without us.
func (a *attacked) plain(dir string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, a.environ()
	return a.bounded(cmd)
}

// run is a command under us.
func (a *attacked) run(dir string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(bin, "atip-exec"), args...)
	cmd.Dir, cmd.Env = dir, append(append(a.environ(), "ATIP_SESSION_ID=attack"), a.extra...)
	return a.bounded(cmd)
}

// traces are what the program has left, and forgets it.
func (a *attacked) traces() (ran bool, rights string) {
	a.t.Helper()
	_, err := os.Stat(a.ws + "/ran")
	raw, _ := os.ReadFile(a.ws + "/rights")
	os.Remove(a.ws + "/ran")
	os.Remove(a.ws + "/rights")
	os.Remove(a.home + "/outside")
	return err == nil, strings.Join(strings.Fields(string(raw)), " ")
}

// everywhere runs a test at both tiers, as root and as a user: in the two worlds of a pair that
// have all of these, or in all four where the whole is asked for.
func everywhere(t *testing.T, f func(t *testing.T, a *attacked)) {
	if os.Getuid() != 0 {
		for _, tier := range []string{"T2", "T3"} {
			t.Run(tier, func(t *testing.T) { f(t, newAttacked(t, tier, os.Getuid())) })
		}
		return
	}
	if err := syscall.Access(bin, 5); err == nil {
		_ = os.Chmod(bin, 0o755)
	}
	turn := 0 // of the two pairs
	for _, c := range t.Name() {
		turn += int(c)
	}
	for i, tier := range []string{"T2", "T3"} {
		for j, uid := range []int{0, nobodyID} {
			if whole() || (i+j+turn)%2 == 0 {
				t.Run(fmt.Sprintf("%s/uid%d", tier, uid), func(t *testing.T) { f(t, newAttacked(t, tier, uid)) })
			}
		}
	}
}

// hostileSettings are the settings by which git runs a program. P stands for the program.
var hostileSettings = []struct{ name, config, attributes string }{
	{"ssh", "[core]\n\tsshCommand = P\n[url \"ssh://127.0.0.1:1/\"]\n\tinsteadOf = git://127.0.0.1\n", ""},
	{"fsmonitor", "[core]\n\tfsmonitor = P\n", ""},
	{"hooks", "[core]\n\thooksPath = D/hostile-hooks\n", ""},
	{"gitProxy", "[core]\n\tgitProxy = P\n", ""},
	{"alternateRefs", "[core]\n\talternateRefsCommand = P\n", ""},
	{"helper", "[credential]\n\thelper = !P\n", ""},
	{"diffExternal", "[diff]\n\texternal = P\n", "* text\n"},
	{"textconv", "[diff \"x\"]\n\ttextconv = P\n", "* diff=x\n"},
	{"diffCommand", "[diff \"x\"]\n\tcommand = P\n", "* diff=x\n"},
	{"clean", "[filter \"x\"]\n\tclean = P\n", "* filter=x\n"},
	{"smudge", "[filter \"x\"]\n\tsmudge = P\n", "* filter=x\n"},
	{"process", "[filter \"x\"]\n\tprocess = P\n", "* filter=x\n"},
	{"mergeDriver", "[merge \"x\"]\n\tdriver = P %A %O %B\n", "* merge=x\n"},
	{"signature", "[gpg]\n\tprogram = P\n[log]\n\tshowSignature = true\n", ""},
	{"uploadpack", "[remote \"origin\"]\n\tuploadpack = P\n[url \"file://D/../up.git\"]\n\tinsteadOf = U\n", ""},
	{"ext", "[url \"ext::P \"]\n\tinsteadOf = U\n[protocol \"ext\"]\n\tallow = always\n", ""},
	{"pager", "[core]\n\tpager = P\n[pager]\n\tlog = P\n\tdiff = P\n", ""},
	{"recentObjects", "[gc]\n\trecentObjectsHook = P\n", ""},
	{"include", "[include]\n\tpath = D/included\n", ""},
	{"includeIf", "[includeIf \"gitdir:/\"]\n\tpath = D/included\n", ""},
}

// ways are how git comes to read a setting. Each plants it and returns the words with which
// git then reads it, and the directory.
var ways = map[string]func(a *attacked, config string) (dir string, words []string){
	"config": func(a *attacked, config string) (string, []string) {
		return a.ws, a.append(a.ws+"/.git/config", config)
	},
	"worktree": func(a *attacked, config string) (string, []string) {
		a.append(a.ws+"/.git/config", "[extensions]\n\tworktreeConfig = true\n")
		return a.ws, a.append(a.ws+"/.git/config.worktree", config)
	},
	"below": func(a *attacked, config string) (string, []string) {
		a.append(a.ws+"/.git/config", config)
		_ = os.MkdirAll(a.ws+"/some/where", 0o755)
		a.own(a.ws)
		return a.ws + "/some/where", nil
	},
	"nested -C": func(a *attacked, config string) (string, []string) {
		a.git(a.ws, "clone", "-q", a.url("up.git"), "nested")
		a.append(a.ws+"/nested/.git/config", config)
		return a.ws, []string{"-C", "nested"}
	},
	"nested by a link": func(a *attacked, config string) (string, []string) {
		a.git(a.ws, "clone", "-q", a.url("up.git"), "nested")
		a.append(a.ws+"/nested/.git/config", config)
		_ = os.Symlink("nested", a.ws+"/Other")
		return a.ws, []string{"-C", "./some/../Other"}
	},
	".git file": func(a *attacked, config string) (string, []string) {
		a.git(a.ws, "clone", "-q", "--separate-git-dir", "hidden", a.url("up.git"), "nested")
		a.append(a.ws+"/hidden/config", config)
		return a.ws + "/nested", nil
	},
	"submodule": func(a *attacked, config string) (string, []string) {
		a.git(a.ws, "submodule", "add", "-q", a.url("up.git"), "sub")
		a.append(a.ws+"/.git/modules/sub/config", config)
		return a.ws, []string{"-C", "sub"}
	},
	"recursion": func(a *attacked, config string) (string, []string) {
		a.git(a.ws, "submodule", "add", "-q", a.url("up.git"), "sub")
		a.append(a.ws+"/.git/modules/sub/config", config)
		return a.ws, a.append(a.ws+"/.git/config", "[fetch]\n\trecurseSubmodules = true\n")
	},
	"--git-dir": func(a *attacked, config string) (string, []string) {
		a.append(a.ws+"/.git/config", config)
		return a.dir + "/up", []string{"--git-dir=" + a.ws + "/.git", "--work-tree=" + a.ws}
	},
}

// append adds to a file of git.
func (a *attacked) append(path, text string) []string {
	a.t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	if err != nil {
		a.t.Fatal(err)
	}
	_ = os.Lchown(path, a.uid, a.uid)
	return nil
}

// operations are what is then done, each allowed without a question in an ordinary clone.
var operations = [][]string{{"fetch", "origin"}, {"pull", "--no-rebase"}, {"status"}, {"diff"}, {"log", "-1", "-p"}, {"checkout", "-q", "-f", "HEAD~0"}, {"gc", "--auto"}, {"clone", "U", "new"}}

// hostile plants one setting by one way and runs f for each operation.
func (a *attacked) hostile(setting int, way string, f func(dir string, words []string)) {
	a.t.Helper()
	s := hostileSettings[setting]
	expand := strings.NewReplacer("P", a.payload, "D", a.ws, "U", a.url("up.git")).Replace
	fill := func(text string) string {
		var out []string
		for line := range strings.SplitSeq(text, "\n") {
			key, value, ok := strings.Cut(line, "=")
			if strings.HasPrefix(line, "[url") {
				line = expand(line)
			} else if ok {
				line = key + "=" + expand(value)
			}
			out = append(out, line)
		}
		return strings.Join(out, "\n")
	}
	for _, hook := range []string{"reference-transaction", "post-merge", "post-checkout", "pre-auto-gc"} {
		a.write("hostile-hooks/"+hook, a.program())
	}
	a.write("included", "[core]\n\tfsmonitor = "+a.payload+"\n\thooksPath = "+a.ws+"/hostile-hooks\n")
	dir, words := ways[way](a, fill(s.config))
	if s.attributes != "" {
		for _, git := range []string{a.ws + "/.git", a.ws + "/nested/.git", a.ws + "/.git/modules/sub", a.ws + "/hidden"} {
			if _, err := os.Stat(git + "/HEAD"); err == nil {
				_ = os.MkdirAll(git+"/info", 0o755)
				a.append(git+"/info/attributes", s.attributes)
			}
		}
		for _, tree := range []string{a.ws, a.ws + "/nested", a.ws + "/sub"} {
			if _, err := os.Stat(tree + "/file"); err == nil {
				a.append(tree+"/file", "changed\n")
			}
		}
	}
	a.own(a.ws)
	for i, op := range operations {
		if way != "config" && i != 0 && i != 2 && i != 1+setting%(len(operations)-1) {
			continue
		}
		line := append([]string(nil), words...)
		for _, w := range op {
			line = append(line, strings.ReplaceAll(w, "U", a.url("up.git")))
		}
		f(dir, line)
		os.RemoveAll(filepath.Join(dir, "new"))
	}
}

// TestAttackHostileRepositories: every setting of git that runs a program, by every way in which
// git reads it, under every common command. Nothing of it runs outside the sandbox, and nothing
// with a host or a credential. Plain git runs each of them.
func TestAttackHostileRepositories(t *testing.T) {
	t.Parallel()
	names := []string{"config", "worktree", "below", "nested -C", "nested by a link", ".git file", "submodule", "recursion", "--git-dir"}
	everywhere(t, func(t *testing.T, first *attacked) {
		uid, tier := first.uid, "T3"
		if strings.Contains(t.Name(), "T2") {
			tier = "T2"
		}
		for i, s := range hostileSettings {
			// All pairs of a setting and a way over the tiers, of which a fifth unless more is asked for: each
			// setting by one way or two, each way with four settings or five.
			for k, way := range names {
				if (i*7+k)%5 != 0 && os.Getenv("MORE_STAGES") == "" && !whole() {
					continue
				}
				if (i+k)%2 != map[string]int{"T2": 0, "T3": 1}[tier] && !whole() {
					continue
				}
				a := newAttacked(t, tier, uid)
				a.hostile(i, way, func(dir string, words []string) {
					out, err := a.run(dir, append([]string{"--", "git"}, words...)...)
					if _, rights := a.traces(); rights != "" {
						t.Errorf("%s by %s, git %s: the program of the workspace had %s (%v)\n%s", s.name, way, strings.Join(words, " "), rights, err, out)
					}
				})
			}
		}
	})
}

// TestAttackControls: what the settings above do where nothing confines git.
func TestAttackControls(t *testing.T) {
	t.Parallel()
	for i, s := range hostileSettings {
		if s.name == "recentObjects" || s.name == "alternateRefs" || s.name == "helper" || s.name == "pager" || s.name == "mergeDriver" || s.name == "signature" {
			continue // needs a newer git, an alternate, a server that asks, a terminal, a conflict, a signature
		}
		a := newAttacked(t, "T3", 0)
		did, all := false, ""
		a.hostile(i, "config", func(dir string, words []string) {
			out, _ := a.plain(dir, "git", words...)
			ran, rights := a.traces()
			did = did || ran && strings.Contains(rights, "network") && strings.Contains(rights, "key") && strings.Contains(rights, "outside")
			all += out
		})
		if !did {
			t.Errorf("%s: plain git runs nothing: the row proves nothing\n%s", s.name, all)
		}
	}
}
