package sandbox

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// denialKind names the format of Denial.
const denialKind = "atip-exec.denial/1"

// Denial is what the sandbox refused. Without an observer it is only what a reader of the
// output can tell, and never certain: the kernel reports to the program only, and programs
// reword it.
type Denial struct {
	Kind      string    `json:"kind"`           // "atip-exec.denial/1"
	Op        string    `json:"op"`             // read, write, execute, create, remove, rename, link, connect, socket, call; open if that is not known
	Path      string    `json:"path,omitempty"` // or an address, an address family, a system call
	Class     string    `json:"class"`          // files, starts, network, kernel, proxy
	Rule      string    `json:"rule,omitempty"`
	Errno     string    `json:"errno,omitempty"`
	Guarantee Guarantee `json:"guarantee"`
	Remedy    string    `json:"remedy,omitempty"`
	Count     int       `json:"count"`
	Certain   bool      `json:"certain"`
}

// FaultCode is the code under which the denial is reported; the status stays the child's.
func (d Denial) FaultCode() string {
	if d.Class == "proxy" {
		return errcode.HostRefused
	}
	return errcode.AccessRefused
}

// Refused is what the proxy of a run refused to connect to, and why.
func Refused(host, why string, count int) Denial {
	return Denial{Kind: denialKind, Op: "connect", Path: host, Class: "proxy", Guarantee: NetGranted, Rule: why, Count: count, Certain: true}
}

const notGranted = "this command was not granted network access"

// Unreached says that a run without a network tried to reach a host, so many times.
func Unreached(count int) Denial {
	return Denial{Kind: denialKind, Op: "connect", Class: "network", Errno: "ENETUNREACH", Guarantee: NetGranted, Rule: "network " + NetLoopback.String(), Remedy: notGranted, Count: count, Certain: true}
}

// String is the line for a person.
func (d Denial) String() string {
	if d.Certain {
		text := "denied " + d.Op
		if d.Path != "" {
			text += " " + printable(d.Path)
		}
		if d.Rule != "" {
			text += ": " + d.Rule
		}
		if d.Remedy != "" {
			text += "; " + d.Remedy
		}
		if d.Count > 1 {
			text += " (" + strconv.Itoa(d.Count) + " times)"
		}
		return text + " [" + d.FaultCode() + "]"
	}
	text := "denied, probably: "
	switch d.Class {
	case "network":
		text += "network access"
	case "kernel":
		text += "a system call that no run may make"
	case "owner":
		text += "giving files to another user"
	case "privilege":
		text += "the rights of another user, which no run can get"
	case "signing":
		text += "the key that the account's git signs with"
	case "service":
		text += "the socket of a service outside of the run"
	case "starts":
		text += "starting a program that is not among those of this command"
	default:
		text += "access"
		if d.Path != "" {
			text += " to " + printable(d.Path)
		}
		text += ", which is " + cmp.Or(d.Rule, "outside the granted paths")
	}
	if d.Remedy != "" {
		text += "; " + d.Remedy
	}
	return text + " [E4110]"
}

// printable quotes a name that could drive a terminal: it comes from the child.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.QuoteToASCII(s)
	}
	return s
}

// refusal is how programs word an errno of a refused call.
type refusal struct{ words, errno, class string }

func wordings() []refusal {
	return []refusal{
		{"failed to sign the data", "EACCES", "signing"},
		{"cannot exec 'ssh-keygen'", "EACCES", "signing"},
		{"docker daemon", "EACCES", "service"},
		{"no new privileges", "EPERM", "privilege"},
		{"cannot change ownership", "EPERM", "owner"},
		{"changing ownership", "EPERM", "owner"},
		{"failed to preserve ownership", "EPERM", "owner"},
		{"no valid sudoers sources found", "EPERM", "privilege"},
		{"create pseudo-terminal", "EACCES", "terminal"},
		{"address family not supported", "EAFNOSUPPORT", "network"},
		{"network is unreachable", "ENETUNREACH", "network"},
		{"could not resolve host", "EAI_AGAIN", "network"},
		{"temporary failure in name resolution", "EAI_AGAIN", "network"},
		{"name or service not known", "EAI_NONAME", "network"},
		{"getaddrinfo", "EAI_AGAIN", "network"},
		{"eai_again", "EAI_AGAIN", "network"},
		{"no such host", "EAI_NONAME", "network"},
		{"permission denied", "EACCES", "files"},
		{"permissionerror", "EACCES", "files"},
		{"eacces", "EACCES", "files"},
		{"read-only file system", "EROFS", "files"},
		{"invalid cross-device link", "EXDEV", "files"},
		{"operation not permitted", "EPERM", "kernel"},
		{"out of pty devices", "EACCES", "terminal"},
		// What is not granted is not there in a private root.
		{"directory nonexistent", "ENOENT", "files"},
		{"no such file or directory", "ENOENT", "files"},
	}
}

// tailBytes is how much of the end of standard error is looked at.
const tailBytes = 4 << 10

// Explain guesses from the end of standard error what the sandbox refused to a run that
// failed; hand in what was already redacted. It keeps silent about a path that was granted, and about a network that was.
func Explain(exit Exit, stderr []byte, r Receipt) (Denial, bool) {
	if exit.Code == 0 || r.Tier == T0 {
		return Denial{}, false
	}
	d := Denial{Kind: denialKind, Count: 1}
	if exit.Signal == syscall.Signal(31) { // SIGSYS on every supported Linux
		d.Op, d.Class, d.Errno, d.Guarantee = "call", "kernel", "SIGSYS", Kernel
		d.Remedy = "programs for another architecture cannot run confined"
		return d, true
	}
	if len(stderr) > tailBytes {
		stderr = stderr[len(stderr)-tailBytes:]
	}
	lines := bytes.Split(bytes.TrimSpace(stderr), []byte("\n"))
	for i := len(lines) - 1; i >= 0; i-- {
		lower := strings.ToLower(string(lines[i]))
		for _, f := range wordings() {
			if !strings.Contains(lower, f.words) {
				continue
			}
			if f.errno == "EACCES" && f.class == "files" && r.Exec == ExecClosed && (exit.Code == 126 || strings.Contains(lower, "exec")) {
				f.class = "starts"
			}
			if d, ok := d.of(f, string(lines[i]), r); ok {
				return d, true
			}
		}
	}
	return Denial{}, false
}

// of completes a denial, unless the receipt shows that it cannot be ours.
func (d Denial) of(f refusal, line string, r Receipt) (Denial, bool) {
	d.Class, d.Errno = f.class, f.errno
	switch f.class {
	case "network":
		if r.Net.Mode == NetFull {
			return d, false
		}
		d.Op, d.Guarantee = "connect", NetGranted
		d.Remedy = notGranted
		if f.errno == "EAFNOSUPPORT" && r.Tier != T3 {
			d.Remedy += "; Unix sockets with a path need tier T3 (policy sandbox.tier)"
		}
		if r.Net.Mode == NetAllowlist {
			d.Remedy = "this run reaches only granted hosts, by name and port or through the proxy in HTTPS_PROXY; network.allow in a policy adds hosts"
		}
		return d, true
	case "kernel":
		d.Op, d.Guarantee = "call", Kernel
		return d, true
	case "privilege":
		d.Op, d.Guarantee = "call", Privilege
		d.Remedy = "run it without sudo, or ask the user to run it"
		return d, true
	case "owner":
		d.Op, d.Guarantee = "call", Privilege
		d.Remedy = "tar --no-same-owner, cp without -a; policy process.caps keeps the capability for root"
		return d, true
	case "starts":
		d.Op, d.Guarantee, d.Path = "execute", FilesRead, namedPath(line)
		d.Remedy = "run it as a command of its own"
		return d, true
	case "signing":
		d.Op, d.Guarantee = "read", FilesRead
		d.Remedy = "commit with --no-gpg-sign, merge, rebase or tag with `git -c commit.gpgsign=false -c tag.gpgsign=false`; sign outside of a run"
		return d, true
	case "service":
		// Whoever reaches it is root outside: nobody is told how.
		d.Op, d.Guarantee = "connect", IPCUnix
		return d, true
	case "terminal":
		if r.Tier == T3 {
			return d, false
		}
		d.Op, d.Class, d.Path, d.Guarantee = "open", "files", "/dev/pts", FilesRead
		d.Remedy = "terminals inside a command need tier T3 (policy sandbox.tier)"
		return d, true
	}
	for _, a := range r.Absent {
		if a.Why == secretsHidden && strings.Contains(line, filepath.Base(a.Path)) {
			d.Op, d.Guarantee, d.Path, d.Rule = "read", FilesRead, a.Path, a.Why
			return d, true
		}
	}
	d.Op, d.Guarantee, d.Path = "open", FilesWrite, namedPath(line)
	if f.errno == "ENOENT" && (r.Tier != T3 || d.Path == "" || below(d.Path, r)) {
		return d, false
	}
	if d.Path == "" {
		d.Remedy = "write in the workspace or in $TMPDIR"
		return d, true
	}
	if granted(r.Write, d.Path, Write) {
		return d, false
	}
	if !granted(r.Read, d.Path, Read) {
		d.Guarantee = FilesRead
	}
	d.Remedy = "write in the workspace or in $TMPDIR, or grant the path in the policy (sandbox.read, sandbox.write)"
	return d, true
}

func granted(list []Grant, path string, r Rights) bool {
	return slices.ContainsFunc(list, func(g Grant) bool {
		return covered(g.Rights, r) && (g.Path == path || g.Dir && subpath.Within(path, g.Path))
	})
}

// outside completes a denial of a path that no grant covers.
func (d *Denial) outside(r Rights) {
	key := "write"
	switch {
	case r&(Write|Remove) != 0:
		d.Rule = "outside the write set"
	case r == Exec:
		d.Guarantee, d.Rule, key = FilesRead, "outside the executable paths", "exec"
	default:
		d.Guarantee, d.Rule, key = FilesRead, "outside the read set", "read"
	}
	d.Remedy = "policy sandbox." + key
	if key == "write" {
		d.Remedy = "use the workspace, $TMPDIR or policy sandbox.write"
	}
}

// below reports a path in a directory of which the run has something, or in /tmp: what is missing
// there is missing.
func below(path string, r Receipt) bool {
	for _, list := range [...][]Grant{r.Read, r.Write} {
		for _, g := range list {
			if g.Rights != List && (g.Path == path || g.Dir && subpath.Within(path, g.Path)) {
				return true
			}
		}
	}
	return subpath.Within(path, "/tmp") || subpath.Within(path, "/var/tmp") || subpath.Within(path, "/proc") || subpath.Within(path, "/dev")
}

// namedPath is the first absolute path on a line, quoted or not, that is not the name of the
// program that speaks: a shell begins with its own or its script's, and the line.
func namedPath(line string) string {
	if shell, rest, ok := strings.Cut(line, ": line "); ok && !strings.Contains(shell, " ") {
		line = rest
	}
	if speaker, rest, ok := strings.Cut(line, ": "); ok && strings.HasPrefix(speaker, "/") && !strings.ContainsAny(speaker, " '\"") {
		line = rest
	}
	for i := 0; i < len(line); i++ {
		if line[i] != '/' || i > 0 && !strings.ContainsRune(" '\"`:=(", rune(line[i-1])) {
			continue
		}
		end := " '\"`:,;)"
		if i > 0 && strings.ContainsRune("'\"`", rune(line[i-1])) {
			end = line[i-1 : i] // a quoted name may hold blanks
			if end == "`" {
				end = "`'"
			}
		}
		n := strings.IndexAny(line[i:], end)
		if n < 0 {
			n = len(line) - i
		}
		if n > 1 {
			return strings.TrimRight(line[i:i+n], "/.")
		}
	}
	return ""
}

// Receipt is what was enforced, for the status file, the audit record and explain.
type Receipt struct {
	Tier      Tier                    `json:"tier"`
	Why       string                  `json:"why,omitempty"` // this tier
	ABI       int                     `json:"abi"`
	Given     []Guarantee             `json:"given"`
	Gaps      []Gap                   `json:"gaps"`
	Reduced   []string                `json:"reduced"`
	Absent    []Absent                `json:"absent"`
	Read      []Grant                 `json:"read,omitempty"`
	Write     []Grant                 `json:"write"`
	Sockets   []string                `json:"sockets,omitempty"` // outside, that can be connected to
	Exec      Ceiling                 `json:"exec"`              // which programs the run may start
	Net       Net                     `json:"net"`
	Seccomp   Program                 `json:"seccomp"`
	Limits    map[string]LimitReceipt `json:"limits"`
	Denials   []Denial                `json:"denials"`
	Protected ProtectedReceipt        `json:"protected"`
	Nested    NestedReceipt           `json:"nested"`
}

// NestedReceipt says whether the run is inside another one.
type NestedReceipt struct {
	Outer *string     `json:"outer"`           // its tier, as it says; null for no outer run
	Given []Guarantee `json:"given,omitempty"` // what it keeps, and this run could not
}

// Gap is a guarantee this run does without.
type Gap struct {
	Guarantee Guarantee `json:"guarantee"`
	Why       string    `json:"why"`
	Fix       string    `json:"fix,omitempty"`
}

// Program identifies the system call filter.
type Program struct {
	Name   string `json:"program"`
	SHA256 string `json:"sha256"`
}

// LimitReceipt is a limit and the mechanism that keeps it.
type LimitReceipt struct {
	Max uint64 `json:"max"`
	By  string `json:"by"`
}

// ProtectedReceipt is the result of comparing the protected names.
type ProtectedReceipt struct {
	Checked int      `json:"checked"`
	Changed []string `json:"changed"`
	// Git directories that the run made where no name is protected; not all, if truncated.
	Repositories []string `json:"repositories,omitempty"`
	Unpinned     int      `json:"unpinned,omitempty"` // names that were there and only compared, for want of mounts
	Truncated    bool     `json:"truncated,omitempty"`
}

// Receipt returns the receipt of a run under this setup.
func (s Setup) Receipt() Receipt {
	p := &s.profile
	r := Receipt{Tier: s.tier, Why: s.why, ABI: s.host.ABI, Given: list(s.given), Gaps: list(s.gaps), Reduced: list(s.reduced),
		Absent: list(p.Absent), Write: list(p.Write), Sockets: s.Sockets(), Exec: p.Ceiling, Net: p.Net, Denials: []Denial{}, Limits: map[string]LimitReceipt{"core": {Max: 1, By: "rlimit"}},
		Protected: ProtectedReceipt{Changed: []string{}}}
	r.Read = append(append(r.Read, p.Exec...), p.Read...)
	if s.tier == T3 {
		r.Absent = slices.Clip(r.Absent)
		for _, path := range p.Mask {
			r.Absent = append(r.Absent, Absent{Path: path, Why: secretsHidden})
		}
	}
	if o := s.host.outer; o != nil {
		tier := o.Tier.String()
		r.Nested = NestedReceipt{Outer: &tier, Given: s.outside}
	}
	for name, by := range s.limits.by {
		r.Limits[name] = LimitReceipt{Max: s.limits.limits.value(name), By: by}
	}
	if s.valid && s.tier != T0 {
		r.Seccomp = s.program()
	} else {
		r.Net = Net{Mode: NetFull}
	}
	if s.tier != T3 && s.tier != T0 && p.Net.Mode == NetLoopback {
		r.Net = Net{Mode: NetNone}
	}
	return r
}

// list makes an empty list of none, which JSON readers tell from a missing one.
func list[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

// StepError is a confinement step that failed; nothing ran.
type StepError struct {
	Step string
	Path string
	Code string // "" is E4102
	Err  error
}

// Error implements error.
func (e *StepError) Error() string {
	if e.Path != "" {
		return fmt.Sprintf("cannot confine: %s %s: %v", e.Step, e.Path, e.Err)
	}
	return fmt.Sprintf("cannot confine: %s: %v", e.Step, e.Err)
}

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// FaultCode implements fault.Coded.
func (e *StepError) FaultCode() string {
	switch {
	case e.Code != "":
		return e.Code
	case scarce(e.Err):
		return errcode.OutOfResources
	}
	return errcode.Confinement
}

// scarce reports that there was not enough of something at this moment, which says nothing
// about what the machine can do.
func scarce(err error) bool {
	for _, errno := range [...]syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EFBIG, syscall.EDQUOT} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// FaultDetails implements fault.Coded.
func (e *StepError) FaultDetails() map[string]any {
	d := map[string]any{"step": e.Step}
	if e.Path != "" {
		d["path"] = e.Path
	}
	return d
}

// ExecError is an execve that failed; nothing ran.
type ExecError struct {
	Errno syscall.Errno
	Path  string
	Layer string // what refused: mode, noexec, landlock, interpreter, "" if not known
	// Interpreter is the missing program that Path needs, of layer "interpreter".
	Interpreter string
}

// Error implements error.
func (e *ExecError) Error() string {
	switch {
	case e.Interpreter != "":
		return fmt.Sprintf("cannot execute %s: its interpreter %s is missing", e.Path, e.Interpreter)
	case e.Layer == "landlock":
		return fmt.Sprintf("cannot execute %s: it or its interpreter is outside the executable paths of the sandbox", e.Path)
	case e.Errno == syscall.ENOEXEC:
		return fmt.Sprintf("cannot execute %s: it is neither a program nor a script with a #! line", e.Path)
	}
	return fmt.Sprintf("cannot execute %s: %v", e.Path, e.Errno)
}

// Unwrap returns the errno.
func (e *ExecError) Unwrap() error { return e.Errno }

// FaultCode implements fault.Coded.
func (e *ExecError) FaultCode() string {
	switch e.Errno {
	case syscall.ETXTBSY:
		return errcode.ExecutableBusy
	case syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE:
		return errcode.OutOfResources
	}
	return errcode.NotExecutable
}

// FaultDetails implements fault.Coded.
func (e *ExecError) FaultDetails() map[string]any {
	d := map[string]any{"path": e.Path, "errno": int(e.Errno)}
	if e.Layer != "" {
		d["layer"] = e.Layer
	}
	if e.Interpreter != "" {
		d["interpreter"] = e.Interpreter
	}
	return d
}

// ForbiddenError is a policy that grants what no run may write.
type ForbiddenError struct{ Path, Pos, Rule, Why string }

// Error implements error.
func (e *ForbiddenError) Error() string {
	pos := e.Pos
	if pos != "" {
		pos += ": "
	}
	return fmt.Sprintf("%ssandbox must not grant %s: %s", pos, e.Path, e.Why)
}

// FaultCode implements fault.Coded.
func (e *ForbiddenError) FaultCode() string { return errcode.PolicyOwnState }

// FaultDetails implements fault.Coded.
func (e *ForbiddenError) FaultDetails() map[string]any {
	return map[string]any{"path": e.Path, "position": e.Pos, "rule": e.Rule, "why": e.Why}
}

// GapError is a guarantee that is needed and cannot be given here.
type GapError struct {
	Tier Tier // the tier asked for by policy, or the best there is
	Gaps []Gap
}

// Error implements error.
func (e *GapError) Error() string {
	text := "this machine cannot enforce"
	for i, g := range e.Gaps {
		if i > 0 {
			text += ","
		}
		text += " " + string(g.Guarantee) + " (" + g.Why + ")"
	}
	return text
}

// FaultCode implements fault.Coded.
func (e *GapError) FaultCode() string { return errcode.GuaranteeMissing }

// FaultDetails implements fault.Coded.
func (e *GapError) FaultDetails() map[string]any {
	return map[string]any{"tier": e.Tier.String(), "gaps": e.Gaps}
}

// Unconfined is a run that nothing would confine and no policy permits so.
func Unconfined(why string) error {
	return &errcode.Error{Code: errcode.Unconfined, Msg: "nothing here can confine the command, and policy does not permit that: " + why, Details: map[string]any{"why": why}}
}

// stateError is a start that the state of this process forbids.
func stateError(why string) error {
	return &errcode.Error{Code: errcode.Internal, Msg: "cannot start: " + why}
}

// limitError is a limit that cannot be kept here.
func limitError(limit, why string) error {
	return &errcode.Error{Code: errcode.LimitUnenforced, Msg: "limit " + limit + " cannot be kept: " + why, Details: map[string]any{"limit": limit, "why": why}}
}
