package tools

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/run"
)

// signingKey is a key that ssh-keygen signs with: a private key, or the public half
// of one that an agent or a security key holds.
type signingKey struct {
	file     string
	approver string
}

// ownKey is where --init puts the key: in our state, which no sandbox of ours can read.
func (a answers) ownKey() string { return filepath.Join(a.dirs.State, "approver", "id_ed25519") }

// signingKey finds the key whose public half an approver has registered.
func (a answers) signingKey(file string, approvers []approve.Approver) (signingKey, error) {
	if file == "" {
		file = a.ownKey()
	}
	public, err := publicKey(file)
	if errors.Is(err, os.ErrNotExist) {
		return signingKey{}, fault.New("E1005", "no key to sign with at "+file).WithFix("make one", "atip approve --init")
	}
	if err != nil {
		return signingKey{}, fault.New("E1005", err.Error())
	}
	for _, known := range approvers {
		if approve.SameKey(known.Key, public) {
			return signingKey{file: file, approver: known.ID}, nil
		}
	}
	return signingKey{}, refused(errNoKey.Error() + ": " + file + " is not registered")
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
func (k signingKey) sign(g *approve.Grant, t *terminal) error {
	message, err := g.Signed()
	if err != nil {
		return err
	}
	var signature bytes.Buffer
	cmd := exec.Command(keygen(), "-Y", "sign", "-f", k.file, "-n", approve.GrantNamespace)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(message), &signature, t.out
	if err := cmd.Run(); err != nil {
		return refused("ssh-keygen did not sign: " + err.Error())
	}
	g.Sig = signature.String()
	return nil
}

// keygen is found in the usual places first: PATH belongs to whoever started us.
func keygen() string {
	for _, dir := range [...]string{"/usr/bin", "/usr/local/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin"} {
		path := filepath.Join(dir, "ssh-keygen")
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return "ssh-keygen"
}

// init makes a key, or takes the one named, and registers it.
func (a answers) init(c *cli.Console, file string) error {
	t, err := a.ownTerminal()
	if err != nil {
		return err
	}
	defer t.Close()
	if file == "" {
		file = a.ownKey()
		if err := makeKey(file, t); err != nil {
			return err
		}
	}
	level := keyLevel(file)
	public, err := publicKey(file)
	if err != nil {
		return fault.New("E1005", err.Error())
	}
	id := "person"
	if fields := strings.Fields(public); len(fields) > 2 {
		id = fields[2]
	}
	if strings.HasPrefix(public, "sk-") {
		level = 3
	}
	list := run.ApproversFile(a.dirs)
	if err := approve.AddApprover(list, approve.Approver{ID: id, Key: public, Level: level}); err != nil {
		return err
	}
	note := ""
	if level == 0 {
		note = "It has no passphrase of its own here, or an SSH agent holds it: whatever runs as you outside a sandbox can approve with it.\n"
	}
	return t.say("Registered " + visible(id) + " with level " + itoa(level) + " in " + list + ".\n" + note)
}

// makeKey runs ssh-keygen, which asks for the passphrase.
func makeKey(file string, t *terminal) error {
	if _, err := os.Lstat(file); err == nil {
		return fault.New("E1004", "there is a key already at "+file).WithFix("remove it first, or name another with --key", "")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fault.New("E1005", err.Error())
	}
	cmd := exec.Command(keygen(), "-q", "-t", "ed25519", "-C", "person", "-f", file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.in, t.out, t.out
	if err := cmd.Run(); err != nil {
		return refused("ssh-keygen made no key: " + err.Error())
	}
	return nil
}

// keyLevel is 1 for a key in a file that asks for a passphrase each time. One without,
// and one whose private half is elsewhere, where an SSH agent uses it for whoever asks,
// need no person.
func keyLevel(file string) int {
	private := strings.TrimSuffix(file, ".pub")
	if _, err := os.Stat(private); err != nil {
		return 0
	}
	// What an empty passphrase opens has none.
	if exec.Command(keygen(), "-y", "-P", "", "-f", private).Run() == nil {
		return 0
	}
	return 1
}
