package tools

import (
	"os"
	"path/filepath"

	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/run"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/shims"
)

// check is one line of the doctor's report.
type check struct {
	ID      string `json:"id"`
	Status  string `json:"status"` // ok, warn, fail
	Summary string `json:"summary"`
	Fix     string `json:"fix,omitempty"`
}

func doctorVerb(c *cli.Console, v *cli.Values) (int, error) {
	m := run.Here()
	dirs, err := place.DirsFromEnv(os.Getenv, "")
	if err != nil {
		return 0, fault.New("E1005", err.Error())
	}
	checks := kernelChecks(dirs, m)
	checks = append(checks, stateChecks(dirs, m)...)
	status := 0
	for _, k := range checks {
		if k.Status == "fail" {
			status = 69
		}
	}
	if c.Documents() {
		return status, c.Document(map[string]any{"kind": "atip-exec.doctor/1", "ok": status == 0, "checks": checks})
	}
	for _, k := range checks {
		mark := map[string]string{"ok": "✔", "warn": "!", "fail": "✘"}[k.Status]
		text := mark + " " + k.ID + "  " + k.Summary + "\n"
		if k.Fix != "" {
			text += "    fix: " + k.Fix + "\n"
		}
		if err := c.Text(text); err != nil {
			return status, err
		}
	}
	return status, nil
}

func kernelChecks(dirs place.Dirs, m run.Machine) []check {
	host, err := sandbox.Probe(sandbox.Cache{Dir: dirs.State, Executable: m.Self})
	if err != nil {
		return []check{{"sandbox", "fail", err.Error(), "see docs/platforms.md"}}
	}
	var out []check
	switch can := sandbox.Enforceable(host); {
	case can.Files && can.Net:
		out = append(out, check{"sandbox", "ok", "files and network are enforced by the kernel", ""})
	default:
		out = append(out, check{"sandbox", "fail", "this system cannot confine: " + host.Landlock, "use Linux 5.13 or newer with Landlock in the list of security modules (boot option lsm=)"})
	}
	if host.ABI > 0 {
		k := check{"landlock", "ok", "ABI " + itoa(host.ABI), ""}
		if host.ABI < 6 {
			k.Status, k.Fix = "warn", "Linux 6.12 adds signal and abstract socket scopes"
		}
		out = append(out, k)
	}
	if host.Seccomp {
		out = append(out, check{"seccomp", "ok", "filters load", ""})
	} else {
		out = append(out, check{"seccomp", "fail", "filters do not load", "build the kernel with CONFIG_SECCOMP_FILTER"})
	}
	if host.Namespaces {
		out = append(out, check{"namespaces", "ok", "user namespaces can be made", ""})
	} else {
		out = append(out, check{"namespaces", "warn", "user namespaces cannot be used: " + host.NSWhy, "runs stay at the tier that needs none"})
	}
	return out
}

func stateChecks(dirs place.Dirs, m run.Machine) []check {
	var out []check
	if set, err := run.Policies(m); err != nil {
		out = append(out, check{"policy", "fail", err.Error(), "correct the file; nothing runs until it parses"})
	} else {
		out = append(out, check{"policy", "ok", itoa(len(set.Sources())) + " documents, profile " + set.Profile(), ""})
	}
	out = append(out, approverCheck(m))
	auditDir := filepath.Join(dirs.State, "audit")
	if _, err := os.Stat(auditDir); os.IsNotExist(err) {
		out = append(out, check{"audit", "ok", "no records yet", ""})
	} else if sum, err := audit.Verify(auditDir); err != nil {
		out = append(out, check{"audit", "warn", err.Error(), ""})
	} else if !sum.OK() {
		out = append(out, check{"audit", "fail", "the chain is broken", "atip audit verify"})
	} else {
		out = append(out, check{"audit", "ok", itoa(sum.Records) + " records, the chain holds", ""})
	}
	if entries, err := shims.List(shims.DirsFromEnv(os.Getenv, dirs.Home)); err != nil {
		out = append(out, check{"metadata", "fail", err.Error(), "correct or remove the file"})
	} else {
		out = append(out, check{"metadata", "ok", itoa(len(entries)) + " tools", ""})
	}
	sibling := filepath.Join(filepath.Dir(m.Self), "atip-exec")
	if _, err := os.Stat(sibling); err != nil {
		out = append(out, check{"programs", "warn", "atip-exec is not beside atip", "install both into one directory"})
	} else {
		out = append(out, check{"programs", "ok", "atip and atip-exec lie side by side", ""})
	}
	return out
}

// levelText is what a level of protection means (docs/approvals.md).
func levelText(level int) string {
	switch level {
	case 0:
		return "its key can be used without a person"
	case 1:
		return "a passphrase for each grant"
	case 2:
		return "a key of another user"
	}
	return "a touch of a security key"
}

// approverCheck says how well a permission is guarded (docs/approvals.md).
func approverCheck(m run.Machine) check {
	known, err := run.Approvers(m)
	switch {
	case err != nil:
		return check{"approvers", "fail", err.Error(), "correct the file; what needs a person is refused until then"}
	case len(known) == 0:
		return check{"approvers", "warn", "nobody can permit what needs a person", "atip approve --init"}
	}
	low, high := 3, 0
	for _, a := range known {
		low, high = min(low, a.Level), max(high, a.Level)
	}
	text := itoa(len(known)) + " registered, the weakest of level " + itoa(low) + " (" + levelText(low) + ")"
	if set, err := run.Policies(m); err == nil {
		for name, level := range set.Approval().MinLevel {
			if level > high {
				return check{"approvers", "warn", text + "; policy demands level " + itoa(level) + " for " + name + ", which nobody has", "register a key of that level: atip approve --init --key FILE.pub"}
			}
		}
	}
	if low == 0 {
		return check{"approvers", "warn", text + ": its key needs no person", "give the key a passphrase, or use a security key"}
	}
	return check{"approvers", "ok", text, ""}
}
