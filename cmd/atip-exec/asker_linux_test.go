package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// asker is a world with a tool that needs a person, and a person with a terminal.
type asker struct {
	world
	ran *atomic.Int64 // how often the tool ran, by what it printed
}

func newAsker(t *testing.T) asker {
	t.Parallel() // most of the time is the person's
	a := asker{world: newWorld(t), ran: new(atomic.Int64)}
	a.tool("gh", `echo run; cat`)
	return a
}

// tool puts a script into PATH, outside the workspace.
func (a asker) tool(name, body string) {
	a.t.Helper()
	dir := filepath.Join(a.home, "stubs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		a.t.Fatal(err)
	}
}

// try runs a command under the wrapper and returns the status and the error.
func (a asker) try(change func(*exec.Cmd), args ...string) (int, refusal) {
	a.t.Helper()
	cmd := a.command(args...)
	cmd.Env[1] = "PATH=" + filepath.Join(a.home, "stubs") + ":/usr/local/bin:/usr/bin:/bin"
	if change != nil {
		change(cmd)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	a.ran.Add(int64(strings.Count(stdout.String(), "run\n")))
	var doc struct{ Error refusal }
	for _, line := range strings.Split(stderr.String(), "\n") {
		if strings.HasPrefix(line, `{"error"`) {
			if err := json.Unmarshal([]byte(line), &doc); err != nil {
				a.t.Fatalf("%v: %s", err, line)
			}
		}
	}
	doc.Error.text = stderr.String()
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode(), doc.Error
	} else if err != nil {
		a.t.Fatal(err)
	}
	return 0, doc.Error
}

type refusal struct {
	Code    string
	Details struct {
		RequestID  string `json:"requestId"`
		Changed    []string
		LockDigest string
	}
	text string
}

// request runs a command that needs a person and returns the id of its request, made
// as if it came from another session.
func (a asker) request(args ...string) string {
	a.t.Helper()
	code, e := a.try(nil, args...)
	if code != 77 || e.Code != "E2010" || e.Details.RequestID == "" {
		a.t.Fatalf("%v: exit %d: %s", args, code, e.text)
	}
	for _, word := range []string{"approve", "grant", "switch", "approvers", "ssh-"} {
		if strings.Contains(e.text, word) {
			a.t.Errorf("the refusal says %q: %s", word, e.text)
		}
	}
	a.elsewhere(e.Details.RequestID)
	return e.Details.RequestID
}

func (a asker) state(name string) string {
	return filepath.Join(a.home, ".local/state/atip-exec", name)
}

func (a asker) elsewhere(id string) {
	a.t.Helper()
	file := filepath.Join(a.state("requests"), id+".json")
	raw, err := os.ReadFile(file)
	if err != nil {
		a.t.Fatal(err)
	}
	var r map[string]json.RawMessage
	if err := json.Unmarshal(raw, &r); err != nil {
		a.t.Fatal(err)
	}
	sid, err := unix.Getsid(0)
	if err != nil {
		a.t.Fatal(err)
	}
	r["requester"] = json.RawMessage(fmt.Sprintf(`{"uid":0,"pid":1,"sid":%d}`, sid)) // the later requests come from the same session
	if raw, err = json.Marshal(r); err != nil {
		a.t.Fatal(err)
	}
	// A new file: what tells a person of the request may still be reading the old one.
	if err := os.WriteFile(file+".new", raw, 0o600); err != nil {
		a.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		a.t.Fatal(err)
	}
}

// person types on a terminal of their own: for each prompt the answer to it.
func (a asker) person(dialogue [][2]string, args ...string) (int, string) {
	a.t.Helper()
	return a.personWith(nil, dialogue, args...)
}

func (a asker) personWith(change func(*exec.Cmd), dialogue [][2]string, args ...string) (int, string) {
	a.t.Helper()
	outer, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		a.t.Fatal(err)
	}
	defer outer.Close()
	number, err := unix.IoctlGetInt(int(outer.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(outer.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	inner, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		a.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "atip"), args...)
	cmd.Dir, cmd.Env = a.ws, []string{"HOME=" + a.home, "PATH=/usr/bin:/bin", "TERM=dumb"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inner, inner, inner
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if slices.Contains(args, "--init") {
		a.opened(cmd)
	}
	if change != nil {
		change(cmd)
	}
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	inner.Close()
	var mu sync.Mutex
	var seen bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		at, buf := 0, make([]byte, 4096)
		for {
			n, err := outer.Read(buf)
			mu.Lock()
			seen.Write(buf[:n])
			for len(dialogue) > 0 {
				i := strings.Index(seen.String()[at:], dialogue[0][0])
				if i < 0 {
					break
				}
				at += i + len(dialogue[0][0])
				outer.WriteString(dialogue[0][1] + "\n")
				dialogue = dialogue[1:]
			}
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	err = cmd.Wait()
	<-done
	out := strings.ReplaceAll(seen.String(), "\r\n", "\n")
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode(), out
	} else if err != nil {
		a.t.Fatal(err)
	}
	return 0, out
}

// opened has a stand-in for a terminal program open the terminal.
func (a asker) opened(cmd *exec.Cmd) {
	a.t.Helper()
	dir := filepath.Join(a.home, "terminals")
	put(a.t, dir, map[string]string{"xterm": "#!/bin/sh\nsetsid -c -w \"$@\"\n"})
	if err := os.Chmod(dir+"/xterm", 0o755); err != nil {
		a.t.Fatal(err)
	}
	cmd.Path, cmd.Args = dir+"/xterm", append([]string{"xterm", cmd.Path}, cmd.Args[1:]...)
	cmd.SysProcAttr.Setctty = false
}

const passphrase = "correct horse"

// registered is the home of a person who has made a key and registered it, once for all tests.
var registered struct {
	sync.Mutex
	home string
}

// register makes the person's key. Only the first test has it made by the program: its passphrase costs an eighth of a
// second of processors at each use, and that of the copy for all others a sixteenth of it.
func (a asker) register() {
	a.t.Helper()
	registered.Lock()
	defer registered.Unlock()
	key := ".local/state/atip-exec/approver/id_ed25519"
	copyTo := func(home, from string) {
		a.t.Helper()
		for _, name := range []string{key, key + ".pub", ".config/agent-tools/approvers.json"} {
			raw, err := os.ReadFile(filepath.Join(from, name))
			if err == nil {
				err = os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(home, name), raw, 0o600)
			}
			if err != nil {
				a.t.Fatal(err)
			}
		}
	}
	if registered.home != "" {
		copyTo(a.home, registered.home)
		return
	}
	a.initialize()
	home := filepath.Join(scratch, "registered")
	copyTo(home, a.home)
	if out, err := exec.Command("ssh-keygen", "-q", "-p", "-a", "1", "-P", passphrase, "-N", passphrase, "-f", filepath.Join(home, key)).CombinedOutput(); err != nil {
		a.t.Fatalf("%v: %s", err, out)
	}
	registered.home = home
}

// initialize has the program make and register the key, as a person would.
func (a asker) initialize() {
	a.t.Helper()
	code, out := a.person([][2]string{{"passphrase", passphrase}, {"again", passphrase}}, "approve", "--init")
	if code != 0 || !strings.Contains(out, "level 1") {
		a.t.Fatalf("approve --init: exit %d: %s", code, out)
	}
	doctor := exec.Command(filepath.Join(bin, "atip"), "doctor", "-o", "text")
	doctor.Dir, doctor.Env = a.ws, []string{"HOME=" + a.home, "PATH=/usr/bin:/bin"}
	if out, _ := doctor.CombinedOutput(); !strings.Contains(string(out), "approvers  1 registered, the weakest of level 1") {
		a.t.Errorf("doctor: %s", out)
	}
}

// approve answers the request as a person does who reads it.
func (a asker) approve(id string, flags ...string) string {
	a.t.Helper()
	digest := a.digest(id)
	code, out := a.person([][2]string{{"to approve: ", digest[len(digest)-4:]}, {"passphrase", passphrase}}, append([]string{"approve", id}, flags...)...)
	if code != 0 {
		a.t.Fatalf("approve: exit %d: %s", code, out)
	}
	return out
}

func (a asker) digest(id string) string {
	a.t.Helper()
	raw, err := os.ReadFile(filepath.Join(a.state("requests"), id+".json"))
	var r struct{ Digest string }
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return r.Digest
}

func (a asker) runs() int { return int(a.ran.Load()) }

// unreached reports what curl says of a service that is not there: 7 is a refused
// connection, 52 and 56 one that ends at once, as the forwarded port of a run does that has
// a loopback of its own, and 55 the same while curl still sends.
func unreached(code int) bool { return code == 7 || code == 52 || code == 55 || code == 56 }
