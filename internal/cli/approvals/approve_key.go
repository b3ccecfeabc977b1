package approvals

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/outside"
	"github.com/atip-dev/atip-exec/internal/plan"
)

// signingKey is a key that ssh-keygen signs with: a private key, or the public half
// of one that an agent or a security key holds.
type signingKey struct {
	file     string
	approver string
}

// OwnKey is where --init puts the key: in our state, which no sandbox of ours can read.
func (a Answers) OwnKey() string { return filepath.Join(a.Dirs.State, "approver", "id_ed25519") }

// signingKey finds the key whose public half an approver has registered.
func (a Answers) signingKey(file string, approvers []approve.Approver) (signingKey, error) {
	if file == "" {
		file = a.OwnKey()
	}
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	public, err := publicKey(file)
	if errors.Is(err, os.ErrNotExist) {
		return signingKey{}, fault.New(errcode.NoInputFile, "no key to sign with at "+file).WithFix("make one", "atip approve --init")
	}
	if err != nil {
		return signingKey{}, fault.New(errcode.NoInputFile, err.Error())
	}
	for _, known := range approvers {
		if approve.SameKey(known.Key, public) {
			if known.Level > 0 && !strings.HasPrefix(public, "sk-") && keyLevel(file) == 0 {
				return signingKey{}, Refused(file + " is registered with level " + strconv.Itoa(known.Level) + ", but signs without asking now: its file has no passphrase, or an SSH agent holds it; take it out of the agent (ssh-add -d) or register it again")
			}
			return signingKey{file: file, approver: known.ID}, nil
		}
	}
	return signingKey{}, Refused(errNoKey.Error() + ": " + file + " is not registered")
}

// publicKey reads the public half that ssh-keygen leaves beside a private key.
func publicKey(file string) (string, error) {
	if !strings.HasSuffix(file, ".pub") {
		file += ".pub"
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(raw)), nil
}

// sign has ssh-keygen sign the grant. It asks for a passphrase or a touch itself, on
// the terminal that we hold.
func (k signingKey) sign(g *approve.Grant, t *Terminal) error {
	message, err := g.Signed()
	if err != nil {
		return err
	}
	var signature bytes.Buffer
	cmd := Keygen("-Y", "sign", "-f", k.file, "-n", approve.GrantNamespace)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(message), &signature, t.Out
	if err := cmd.Run(); err != nil {
		return Refused("ssh-keygen did not sign: " + err.Error())
	}
	g.Sig = signature.String()
	return nil
}

// Keygen is ssh-keygen, of the system: PATH belongs to whoever started us, and so does the
// rest of the environment but the way to the agent that holds the key.
func Keygen(args ...string) *exec.Cmd {
	path := "/usr/bin/ssh-keygen"
	for _, dir := range [...]string{"/usr/bin", "/usr/local/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin"} {
		if info, err := os.Stat(filepath.Join(dir, "ssh-keygen")); err == nil && info.Mode().IsRegular() {
			path = filepath.Join(dir, "ssh-keygen")
			break
		}
	}
	return sshTool(path, args...)
}

// sshTool is a program of OpenSSH beside the sandbox. A path among its arguments is absolute.
func sshTool(path string, args ...string) *exec.Cmd {
	m := caller.Here()
	dirs, err := m.Dirs()
	var more []string
	if agent := m.Getenv("SSH_AUTH_SOCK"); filepath.IsAbs(agent) {
		more = append(more, "SSH_AUTH_SOCK="+agent)
	}
	cmd := outside.Command(context.Background(), dirs, m.Getenv, more, path, args...)
	if err != nil {
		cmd.Err = err
	}
	return cmd
}

// init makes a key, or takes the one named, and registers it.
func (a Answers) init(c *cli.Console, file string) error {
	t, err := a.OwnTerminal()
	if err != nil {
		return err
	}
	defer t.Close()
	// Who asks registers no key to answer with.
	open, err := approve.List(a.Requests)
	if err != nil {
		return err
	}
	own := approve.Ancestry(os.Getpid())
	for _, r := range open {
		if err := r.Requester.Apart(own); err != nil {
			return Refused("request " + r.ID + " is open, and " + err.Error())
		}
	}
	if err := approve.Opened(own); err != nil {
		return Refused(err.Error())
	}
	for _, p := range own {
		if name := approve.Holds(p.PID, plan.SessionVariables()); name != "" {
			return Refused(fmt.Sprintf("process %d (%s), which started this terminal or is it, belongs to the session of an agent ($%s)", p.PID, p.Name, name))
		}
	}
	if file == "" {
		file = a.OwnKey()
		if err := makeKey(file, t); err != nil {
			return err
		}
	}
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	level := keyLevel(file)
	public, err := publicKey(file)
	if err != nil {
		return fault.New(errcode.NoInputFile, err.Error())
	}
	id := "person"
	if fields := strings.Fields(public); len(fields) > 2 {
		id = fields[2]
	}
	if strings.HasPrefix(public, "sk-") {
		level = 3
	}
	list := plan.ApproversFile(a.Dirs)
	if err := approve.AddApprover(list, approve.Approver{ID: id, Key: public, Level: level}); err != nil {
		return err
	}
	note := ""
	if level == 0 {
		note = "It has no passphrase of its own here, or an SSH agent holds it: whatever runs as you outside a sandbox can approve with it.\n"
	}
	return t.Say("Registered " + answer.Visible(id) + " with level " + strconv.Itoa(level) + " in " + list + ".\n" + note)
}

// makeKey runs ssh-keygen, which asks for the passphrase.
func makeKey(file string, t *Terminal) error {
	if _, err := os.Lstat(file); err == nil {
		return fault.New(errcode.Arguments, "there is a key already at "+file).WithFix("remove it first, or name another with --key", "")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fault.New(errcode.NoInputFile, err.Error())
	}
	cmd := Keygen("-q", "-t", "ed25519", "-C", "person", "-f", file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.in, t.Out, t.Out
	if err := cmd.Run(); err != nil {
		return Refused("ssh-keygen made no key: " + err.Error())
	}
	return nil
}

// keyLevel is 1 for a key that does not sign without a person: neither its file without a
// passphrase nor an SSH agent that holds it. It is found out by trying.
func keyLevel(file string) int {
	if public, err := publicKey(file); err != nil || strings.HasPrefix(public, "sk-") {
		return 0 // of a security key the caller knows, and trying would wait for a touch
	}
	private := strings.TrimSuffix(file, ".pub")
	if _, err := os.Stat(private); err != nil {
		return 0
	}
	// What an empty passphrase opens has none.
	if Keygen("-y", "-P", "", "-f", private).Run() == nil {
		return 0
	}
	// Without a terminal and a program to ask with, only an agent can sign.
	cmd := Keygen("-Y", "sign", "-f", private, "-n", "atip-exec-try")
	cmd.Stdin = strings.NewReader("try")
	outside.Detach(cmd)
	cmd.Env = append(cmd.Env, "SSH_ASKPASS_REQUIRE=never")
	if cmd.Run() == nil {
		return 0
	}
	return 1
}
