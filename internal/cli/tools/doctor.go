package tools

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/install"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/wiring"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust/settle"
	"github.com/atip-dev/atip-exec/trust/signer"
)

// check is one line of the doctor's report.
type check struct {
	ID      string `json:"id"`
	Status  string `json:"status"` // ok, warn, fail, skip
	Summary string `json:"summary"`
	Fix     string `json:"fix,omitempty"`

	Wiring *wiringRow `json:"wiring,omitempty"` // of a row about an agent or a wrapper
}

// line is a row that is about no agent.
func line(id, status, summary, fix string) check {
	return check{ID: id, Status: status, Summary: summary, Fix: fix}
}

// wiringRow is how commands of one agent, or of one name in PATH, reach us.
type wiringRow struct {
	Found      bool        `json:"found"`   // it is on this machine
	Covered    bool        `json:"covered"` // its commands go through us
	Mode       wiring.Mode `json:"mode,omitempty"`
	File       string      `json:"file,omitempty"`
	Fails      string      `json:"fails"` // "open" or "closed", without an answer of ours
	How        string      `json:"how,omitempty"`
	NotCovered []string    `json:"not_covered,omitempty"`
}

func doctorVerb(c *cli.Console, v *cli.Values) (int, error) {
	m := caller.Here()
	dirs, err := caller.Here().Dirs()
	if err != nil {
		return 0, err
	}
	var fixed []string
	if v.Has("fix") {
		if fixed, err = repair(dirs, m); err != nil {
			return 0, err
		}
	}
	checks, tiers := kernelChecks(dirs, m)
	checks = append(checks, machineChecks()...)
	checks = append(checks, stateChecks(dirs, m)...)
	status := 0
	for _, k := range checks {
		if k.Status == "fail" {
			status = 69
		}
	}
	if c.Documents() {
		doc := map[string]any{"kind": "atip-exec.doctor/1", "ok": status == 0, "checks": checks, "tiers": tiers}
		if v.Has("fix") {
			doc["fixed"], doc["left"] = append([]string{}, fixed...), leftOver(checks)
		}
		return status, c.Document(doc)
	}
	open := leftOver(checks)
	checks, left := answer.Most(v, checks)
	for _, k := range checks {
		mark := map[string]string{"ok": "✔", "warn": "!", "fail": "✘", "skip": "-"}[k.Status]
		text := mark + " " + k.ID + "  " + k.Summary + "\n"
		if k.Fix != "" {
			text += "    fix: " + k.Fix + "\n"
		}
		if err := c.Text(text); err != nil {
			return status, err
		}
	}
	return status, c.Text(answer.LeftOutLine(left) + tierText(tiers) + fixText(v.Has("fix"), fixed, open))
}

// repair does what needs no decision of a person: it writes again the files of installations
// that a person asked for.
func repair(dirs place.Dirs, m caller.Machine) ([]string, error) {
	program := filepath.Join(filepath.Dir(m.Self), "atip-exec")
	s, err := install.Open(dirs.Data, program, false)
	if err != nil || len(s.Wired())+len(s.Shims()) == 0 {
		return nil, nil // the row of the agents says what is wrong
	}
	if s, err = install.Open(dirs.Data, program, true); err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Repair()
}

// leftOver are the rows that need a decision of a person.
func leftOver(checks []check) []string {
	out := []string{}
	for _, k := range checks {
		if k.Status == "warn" || k.Status == "fail" {
			out = append(out, k.ID)
		}
	}
	return out
}

// fixText says what --fix did, and what is left for a person.
func fixText(asked bool, fixed, left []string) string {
	if !asked {
		return ""
	}
	out := "\n"
	for _, line := range fixed {
		out += "fixed: " + answer.Visible(line) + "\n"
	}
	if len(fixed) == 0 {
		out += "fixed: nothing; no file of an installation was damaged\n"
	}
	if len(left) > 0 {
		out += "left for you: " + strings.Join(left, ", ") + "; each row says what to do\n"
	}
	return out
}

// tierText says what each tier promises on this machine.
func tierText(tiers []sandbox.TierReport) string {
	out := ""
	for _, t := range tiers {
		if !t.Usable {
			out += "\n✘ " + t.Tier.String() + "  not usable: " + t.Why + "\n"
			continue
		}
		out += "\n✔ " + t.Tier.String() + "  gives"
		for _, g := range t.Given {
			out += " " + string(g)
		}
		out += "\n"
		for _, g := range t.Gaps {
			out += "    without " + string(g.Guarantee) + "\n"
		}
	}
	return out + "\n`atip sandbox test` tries to break them.\n"
}

func kernelChecks(dirs place.Dirs, m caller.Machine) ([]check, []sandbox.TierReport) {
	host, err := sandbox.Probe(sandbox.Cache{Dir: dirs.State, Executable: m.Self})
	if err != nil {
		return []check{line("sandbox", "fail", err.Error(), "see docs/threat-model.md")}, nil
	}
	out := []check{line("kernel", "ok", kernelRelease(), "")}
	switch can := sandbox.Enforceable(host); {
	case can.Files && can.Net:
		out = append(out, line("sandbox", "ok", "files and network are enforced by the kernel", ""))
	default:
		out = append(out, line("sandbox", "fail", "this system cannot confine: "+host.Landlock, "use Linux 5.13 or newer with Landlock in the list of security modules (boot option lsm=)"))
	}
	if host.ABI > 0 {
		k := line("landlock", "ok", "ABI "+strconv.Itoa(host.ABI), "")
		if host.ABI < 6 {
			k.Status, k.Fix = "warn", "Linux 6.12 adds signal and abstract socket scopes"
		}
		out = append(out, k)
	}
	if host.Seccomp {
		out = append(out, line("seccomp", "ok", "filters load", ""))
	} else {
		out = append(out, line("seccomp", "fail", "filters do not load", "build the kernel with CONFIG_SECCOMP_FILTER"))
	}
	if host.Namespaces {
		out = append(out, line("namespaces", "ok", "user namespaces can be made", ""))
	} else {
		out = append(out, line("namespaces", "warn", "tier T3 is not there: "+host.NSWhy, namespaceFix(m)))
	}
	switch {
	case host.Overlay:
		out = append(out, line("overlay", "ok", "caches of the host are used at T3, under a private layer", ""))
	case host.Namespaces:
		out = append(out, line("overlay", "warn", "layers over caches cannot be made", "runs at T3 fill caches of their own; a newer kernel (5.11) or another file system may help"))
	}
	if dir, why := host.Cgroup(); dir != "" {
		out = append(out, line("cgroup", "ok", "limits of a whole run are kept below "+dir, ""))
	} else {
		out = append(out, line("cgroup", "warn", "limits of processes below T3, and of root, cannot be kept: "+why, "start from a session that systemd delegates to (systemd-run --user --scope), or set no such limit"))
	}
	return append(out, networkCheck(host)), host.Tiers()
}

// namespaceFix says how a machine that refuses user namespaces allows them to this program.
// The switch for everybody is not what we advise.
func namespaceFix(m caller.Machine) string {
	raw, err := os.ReadFile("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
	if err == nil && strings.TrimSpace(string(raw)) == "1" {
		program := filepath.Join(filepath.Dir(m.Self), "atip-exec")
		return "as root, put this into /etc/apparmor.d/atip-exec and reload it: abi <abi/4.0>, profile atip-exec " + program + " flags=(unconfined) { userns, }"
	}
	if raw, err := os.ReadFile("/proc/sys/user/max_user_namespaces"); err == nil && strings.TrimSpace(string(raw)) == "0" {
		return "user.max_user_namespaces is 0; an administrator has to raise it"
	}
	return "runs stay at the tier that needs none"
}

// machineChecks look at what is neither kernel nor state.
func machineChecks() []check {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return []check{line("terminal", "warn", "no terminal can be made: "+err.Error(), "mount devpts on /dev/pts; without it -t does not work")}
	}
	master.Close()
	return []check{line("terminal", "ok", "terminals can be made", "")}
}

func kernelRelease() string {
	raw, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	return runtime.GOOS + " " + strings.TrimSpace(string(raw)) + " " + runtime.GOARCH
}

// networkCheck says what network a run can be held to here.
func networkCheck(host sandbox.Host) check {
	switch {
	case !sandbox.Enforceable(host).Net:
		return line("network", "fail", "none of the modes can be enforced", "see sandbox")
	case host.HostLists(sandbox.T0):
		return line("network", "ok", "tier T3: none, loopback, allowlist, full; tier T2: none, full", "")
	}
	return line("network", "warn", "none and full; in place of a loopback of its own a run has none, in place of a list of hosts a known tool has the whole network and any other is refused",
		"make user namespaces usable for tier T3; `\"sandbox\": {\"require\": [\"net\"]}` in a policy refuses the whole network")
}

func stateChecks(dirs place.Dirs, m caller.Machine) []check {
	var out []check
	if set, err := plan.Policies(m); err != nil {
		out = append(out, line("policy", "fail", err.Error(), "correct the file; nothing runs until it parses"))
	} else {
		out = append(out, line("policy", "ok", strconv.Itoa(len(set.Sources()))+" documents, profile "+set.Profile(), ""))
		if set.Credentials() == policy.CredentialsPassed {
			out = append(out, line("delegation", "warn", "a delegated run gets the credentials of the tools that its token names: what the kernel cannot see of them rests on those tools",
				"remove delegation.credentials from the policy; the parent run then starts commands that need a credential"))
		}
	}
	out = append(out, approverCheck(m))
	auditDir := filepath.Join(dirs.State, "audit")
	if _, err := os.Stat(auditDir); os.IsNotExist(err) {
		out = append(out, line("audit", "ok", "no records yet", ""))
	} else if sum, err := audit.Verify(auditDir); err != nil {
		out = append(out, line("audit", "warn", err.Error(), ""))
	} else if !sum.OK() {
		out = append(out, line("audit", "fail", "the chain is broken", "atip audit verify"))
	} else {
		out = append(out, line("audit", "ok", strconv.Itoa(sum.Records)+" records, the chain holds", ""))
	}
	if entries, err := shims.List(answer.ShimDirs(dirs)); err != nil {
		out = append(out, line("metadata", "fail", err.Error(), "correct or remove the file"))
	} else {
		out = append(out, line("metadata", "ok", strconv.Itoa(len(entries))+" tools", ""))
	}
	out = append(out, trustChecks(m)...)
	out = append(out, agentChecks(dirs, m)...)
	sibling := filepath.Join(filepath.Dir(m.Self), "atip-exec")
	if _, err := os.Stat(sibling); err != nil {
		out = append(out, line("programs", "warn", "atip-exec is not beside atip", "install both into one directory"))
	} else {
		out = append(out, line("programs", "ok", "atip and atip-exec lie side by side", ""))
	}
	return out
}

// agentChecks say of each agent that init has changed whether it still leads to us, and of
// those that are here which do not.
func agentChecks(dirs place.Dirs, m caller.Machine) []check {
	j := &initJob{dirs: dirs, program: filepath.Join(filepath.Dir(m.Self), "atip-exec")}
	s, err := install.Open(dirs.Data, j.program, false)
	if err != nil {
		return []check{line("agents", "fail", err.Error(), "atip init --status")}
	}
	var out []check
	for _, h := range wiring.Hosts() {
		wired, here := false, found(h, dirs.Home, m.Getenv("PATH"))
		for _, w := range s.Wired() {
			if w.Agent != h.Name {
				continue
			}
			wired = true
			faults := s.Faults(w)
			if len(faults) == 0 {
				faults = j.tryOut(h, w.Mode)
			}
			row := &wiringRow{Found: here, Covered: len(faults) == 0, Mode: w.Mode, File: w.File, NotCovered: h.Gaps}
			row.Fails, row.How = h.Fails(w.Mode)
			k := check{"agent " + h.Name, "ok", "commands go through atip-exec (mode " + string(w.Mode) + ", " + answer.Visible(w.File) + "); fails " + row.Fails + "; not covered: " + strings.Join(h.Gaps, ", "), "", row}
			if len(faults) > 0 {
				k.Status, k.Summary, k.Fix = "fail", strings.Join(faults, "; "), "atip init "+h.Name
			}
			out = append(out, k)
		}
		if wired || !here {
			continue
		}
		row := &wiringRow{Found: true, Fails: "open", NotCovered: []string{"each command"}}
		if len(h.Modes()) == 0 {
			out = append(out, check{"agent " + h.Name, "skip", h.Title + " has no setting that leads to us; whether it was started with our shell cannot be seen", strings.Join(fill(h.Steps, dirs.Data), "; "), row})
			continue
		}
		out = append(out, check{"agent " + h.Name, "warn", h.Title + " runs commands without atip-exec", "atip init " + h.Name, row})
	}
	return append(out, shimChecks(dirs, m)...)
}

// levelText is what a level of protection means (docs/approvals.md).
func levelText(level int) string {
	switch level {
	case 0:
		return "its key works without a passphrase or a touch"
	case 1:
		return "a passphrase for each grant"
	case 2:
		return "a key of another user"
	}
	return "a touch of a security key"
}

// approverCheck says how well a permission is guarded (docs/approvals.md).
func approverCheck(m caller.Machine) check {
	known, err := plan.Approvers(m)
	switch {
	case err != nil:
		return line("approvers", "fail", err.Error(), "correct the file; what needs approval is refused until then")
	case len(known) == 0:
		return line("approvers", "warn", "no approver is registered, so no request can be approved", "atip approve --init")
	}
	low, high := 3, 0
	for _, a := range known {
		low, high = min(low, a.Level), max(high, a.Level)
	}
	text := strconv.Itoa(len(known)) + " registered, the weakest of level " + strconv.Itoa(low) + " (" + levelText(low) + ")"
	if set, err := plan.Policies(m); err == nil {
		for name, level := range set.Approval().MinLevel {
			if level > high {
				return line("approvers", "warn", text+"; policy demands level "+strconv.Itoa(level)+" for "+name+", and no key has it", "register a key of that level: atip approve --init --key FILE.pub")
			}
		}
	}
	if low == 0 {
		return line("approvers", "warn", text+": an agent can use its key", "give the key a passphrase, or use a security key")
	}
	return line("approvers", "ok", text, "")
}

// askVerifier runs our verifier and returns what it prints, also if its verdict is no.
func askVerifier(ctx context.Context, words ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, settle.HelperBeside(caller.Here().Self), words...).Output()
}

// trustChecks say whether signatures can be verified here, and how old the roots are.
func trustChecks(m caller.Machine) []check {
	helper := settle.HelperBeside(m.Self)
	if why := settle.HelperMissing(helper); why != "" {
		return []check{line("verifier", "warn", "signatures cannot be verified: "+why, "install atip-verify beside atip and atip-exec")}
	}
	raw, err := askVerifier(context.Background(), "trust", "status", "-o", "json")
	var status struct {
		Roots []struct {
			Name, Layer, Problem string
			AgeDays              int
			Stale, Used          bool
		}
	}
	if json.Unmarshal(raw, &status) != nil || len(status.Roots) == 0 {
		text := "atip-verify gave no usable answer"
		if err != nil {
			text += ": " + err.Error()
		}
		return []check{line("verifier", "fail", text, "atip trust status")}
	}
	out := []check{line("verifier", "ok", "atip-verify answers", "")}
	for _, r := range status.Roots {
		k := line("root", "ok", r.Name+" ("+r.Layer+"), "+strconv.Itoa(r.AgeDays)+" days old", "")
		switch {
		case r.Problem != "":
			k.Status, k.Summary, k.Fix = "fail", r.Name+" ("+r.Layer+"): "+r.Problem, signer.UpdateRoot(r.Name)
		case !r.Used:
			continue
		case r.Stale:
			k.Status, k.Fix = "warn", signer.UpdateRoot(r.Name)
		}
		out = append(out, k)
	}
	return out
}
