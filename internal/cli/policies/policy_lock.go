package policies

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/cli/approvals"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
)

const lockDays = 90

// lockPolicy edits and signs what CI may do although it would need a person.
func lockPolicy(c *cli.Console, v *cli.Values, words []string) error {
	file := filepath.FromSlash(plan.DefaultLock)
	switch {
	case len(words) == 2 && words[0] == "add":
		return addLock(c, file, words[1], v)
	case len(words) == 1 && words[0] == "sign":
		return signLock(file, v.Get("key"))
	}
	return fault.New(errcode.Arguments, "policy lock: say add REQUEST|DIGEST, or sign").WithFix("add an entry, then sign", "atip policy lock add sha256:… --reason release")
}

// addLock writes an entry for one plan: of an open request, or the lockDigest that a
// refusal in CI names. The signatures of before no longer fit and are dropped.
func addLock(c *cli.Console, file, what string, v *cli.Values) error {
	digest := what
	if !strings.HasPrefix(what, "sha256:") {
		a, err := approvals.Open()
		if err != nil {
			return err
		}
		r, err := a.Request(what)
		if err != nil {
			return err
		}
		if digest, err = approve.LockDigest(r.Bound); err != nil {
			return fault.New(errcode.Arguments, err.Error())
		}
	}
	l, err := approve.ReadLock(file)
	if errors.Is(err, fs.ErrNotExist) {
		l, err = &approve.Lock{Version: 1}, nil
	}
	if err != nil {
		return err
	}
	days := lockDays
	if v.Has("days") {
		days = v.IntOf("days")
	}
	id := "e" + strconv.Itoa(len(l.Entries)+1)
	for n := len(l.Entries) + 2; hasEntry(l, id); n++ {
		id = "e" + strconv.Itoa(n)
	}
	e := approve.LockEntry{ID: id, Kind: "digest", Digest: digest, Reason: v.Get("reason"), Expires: time.Now().UTC().AddDate(0, 0, days).Truncate(time.Second)}
	l.Entries, l.Signatures = append(l.Entries, e), nil
	if err := approve.WriteLock(file, l); err != nil {
		return err
	}
	return c.Answer(map[string]any{"kind": "atip-exec.lock/1", "file": file, "entry": e}, "added "+id+" to "+file+"; it counts once it is signed\n")
}

func hasEntry(l *approve.Lock, id string) bool {
	return slices.ContainsFunc(l.Entries, func(e approve.LockEntry) bool { return e.ID == id })
}

// signLock shows every entry on the person's terminal and signs them.
func signLock(file, key string) error {
	a, err := approvals.Open()
	if err != nil {
		return err
	}
	if key == "" {
		key = a.OwnKey()
	}
	if key, err = filepath.Abs(key); err != nil {
		return fault.New(errcode.NoInputFile, err.Error())
	}
	t, err := a.OwnTerminal()
	if err != nil {
		return err
	}
	defer t.Close()
	l, err := approve.ReadLock(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(errcode.NoInputFile, "no "+file+" here").WithFix("add an entry first", "atip policy lock add sha256:…")
	}
	if err != nil {
		return err
	}
	for _, e := range l.Entries {
		what := e.Digest
		if e.Scope != nil {
			what = fmt.Sprintf("%s %s may %s", e.Scope.Tool, strings.Join(e.Scope.Command, " "), strings.Join(e.Scope.Effects, ", "))
		}
		if err := t.Say(answer.Visible(fmt.Sprintf("%s  until %s  %s  %s %+v", e.ID, e.Expires.Format(time.DateOnly), what, e.Reason, e.Bind)) + "\n"); err != nil {
			return err
		}
	}
	if err := t.Confirm("CI may then run this without approval. Type yes to sign: ", "nothing was signed"); err != nil {
		return err
	}
	text, err := l.Signed()
	if err != nil {
		return err
	}
	var signature bytes.Buffer
	cmd := approvals.Keygen("-Y", "sign", "-f", key, "-n", approve.LockNamespace)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), &signature, t.Out
	if err := cmd.Run(); err != nil {
		return approvals.Refused("ssh-keygen did not sign: " + err.Error())
	}
	l.Signatures = append(l.Signatures, signature.String())
	if err := approve.WriteLock(file, l); err != nil {
		return err
	}
	return t.Say("Signed " + file + ".\n")
}
