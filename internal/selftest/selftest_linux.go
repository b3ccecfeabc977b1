package selftest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/escape"
	"github.com/atip-dev/atip-exec/internal/proxy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// A self-test takes three kinds of processes besides this one, all our own program:
//
//	Run ──exec──► atip __selftest probes …                 the control, unconfined
//	    └─exec──► atip __selftest wrap ──sandbox──► atip __selftest probes …
//
// The wrapper is a process of its own because one that has confined a child is tied to it.

// Verb is the first word that makes our program a part of a self-test. It is no verb: it
// has no help, and it does nothing that its caller could not do.
const Verb = "__selftest"

// patience bounds each run of a family.
const patience = 2 * time.Minute

// Options say what to test.
type Options struct {
	Self   string                // our program
	State  string                // where protected names are kept during a run
	Policy sandbox.PolicyProfile // of this place
	Names  sandbox.Names         // that it protects
}

// job is what a wrapper is told, on standard input.
type job struct {
	Policy sandbox.PolicyProfile
	Names  sandbox.Names
	Self   string
	State  string
	Base   string
	Net    string
	Read   bool
	Limit  bool
	Argv   []string
}

// answer is what a wrapper saw.
type answer struct {
	Out     string
	Exit    int
	Receipt sandbox.Receipt
	Private bool
	Err     string
	Code    string
	Details map[string]any
}

// Run tries every family and judges.
func Run(ctx context.Context, o Options) (*Report, error) {
	var r Report
	gaps, notes := map[string]string{}, map[string]string{}
	for _, family := range escape.Families() {
		a, err := o.family(ctx, &r, family)
		var refused *errcode.Error
		if family.Net == escape.Allowlist && errors.As(err, &refused) && refused.Code == errcode.GuaranteeMissing {
			// Nothing is promised of what does not start.
			notes[string(sandbox.NetGranted)] = "a run that is held to a list of hosts is refused here: " + refused.Msg
			continue
		}
		if err != nil {
			return nil, err
		}
		if family.Net != escape.Allowlist { // which takes a private root by itself
			r.Tier, r.ABI = a.Receipt.Tier.String(), a.Receipt.ABI
		}
		for _, g := range a.Receipt.Gaps {
			if g.Guarantee == sandbox.FilesMeta && !family.Read {
				// Its probes are tried in a run that may write nowhere, which keeps it at every tier.
				notes[string(g.Guarantee)] = "only in runs that write nowhere: " + g.Why
				continue
			}
			gaps[string(g.Guarantee)] = g.Why
		}
	}
	if err := o.lifetime(ctx, &r); err != nil {
		return nil, err
	}
	var names []string
	for _, g := range sandbox.Guarantees() {
		names = append(names, string(g))
	}
	r.judge(names, gaps)
	for i := range r.Guarantees {
		if v := &r.Guarantees[i]; v.Why == "" && v.Status == held {
			v.Why = notes[v.Guarantee]
		}
	}
	return &r, nil
}

// scratch makes an empty directory with a canonical name. What lies in it stands for all
// that is outside, so the policy must not grant it.
func (o Options) scratch() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "atip-sandbox-test-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	canonical, err := filepath.EvalSymlinks(dir)
	if err != nil {
		remove()
		return "", nil, err
	}
	for _, rules := range [][]sandbox.PathRule{o.Policy.Read, o.Policy.Write, o.Policy.Exec} {
		for _, rule := range rules {
			if path := strings.TrimSuffix(rule.Path, "/"); canonical == path || strings.HasPrefix(canonical, path+"/") {
				remove()
				return "", nil, &errcode.Error{Code: errcode.FlagValue, Msg: "the policy (" + rule.Pos + ") grants " + rule.Path + ", in which the test would put what is outside; set TMPDIR to a directory that is not granted"}
			}
		}
	}
	return canonical, remove, nil
}

// family tries the probes of one family without a sandbox and in one.
func (o Options) family(ctx context.Context, r *Report, f escape.Family) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// The control has a world of its own, so both can go on at once.
	var outside answer
	failed := make(chan error, 1)
	go func() {
		var err error
		outside, _, err = o.once(ctx, f, func(base string, argv []string) (answer, error) {
			cmd := exec.CommandContext(ctx, o.Self, argv...)
			cmd.Dir, cmd.Env = base+"/ws", environment(base)
			cmd.WaitDelay = time.Second
			out, err := cmd.Output()
			return answer{Out: string(out)}, err
		}, nil)
		failed <- err
	}()
	var escapes []string
	inside, effects, err := o.once(ctx, f, func(base string, argv []string) (answer, error) {
		return o.wrap(ctx, job{Policy: o.Policy, Names: o.Names, Self: o.Self, State: o.State, Base: base, Net: f.Net, Read: f.Read, Limit: f.Limit, Argv: argv})
	}, &escapes)
	cerr := <-failed
	switch {
	case err != nil:
		return inside, err
	case cerr != nil:
		return inside, fmt.Errorf("control of %s: %w", f.Name, cerr)
	}
	free, done := escape.Outcomes(outside.Out)
	if !done {
		return inside, fmt.Errorf("control of %s did not reach its end", f.Name)
	}
	got, _ := escape.Outcomes(inside.Out)
	for _, p := range f.Probes {
		line := Probe{Family: f.Name, Name: p.Name(), Guarantee: escape.Promise(f.Name, p), Inside: got[p.Name()], Outside: free[p.Name()]}
		switch answered := line.Inside != ""; {
		case line.Outside != "ok":
			line.Status = notHere
		case !answered:
			line.Status = launchFail
		case effects[p.Name()]:
			line.Status = escaped
		case p.Denied(line.Inside, inside.Private):
			line.Status = denied
		case line.Inside == "ok":
			line.Status = escaped
		default:
			line.Status = unclear
		}
		r.Probes = append(r.Probes, line)
	}
	for _, path := range escapes {
		// No probe said so, and yet something outside is not what it was.
		r.Probes = append(r.Probes, Probe{Family: f.Name, Name: "changed:" + path, Guarantee: string(sandbox.FilesWrite), Inside: "changed", Outside: "ok", Status: escaped})
	}
	return inside, nil
}

// once runs the probes in a world of their own and looks at the world afterwards.
func (o Options) once(ctx context.Context, f escape.Family, run func(base string, argv []string) (answer, error), changed *[]string) (answer, map[string]bool, error) {
	base, remove, err := o.scratch()
	if err != nil {
		return answer{}, nil, err
	}
	defer remove()
	w, err := escape.NewWorld(base, f.Probes)
	if err != nil {
		return answer{}, nil, err
	}
	defer w.Close()
	victim := exec.CommandContext(ctx, o.Self, Verb, "victim")
	victim.Dir, victim.Env = "/", []string{}
	if err := victim.Start(); err != nil {
		return answer{}, nil, err
	}
	defer func() {
		_ = victim.Process.Kill()
		_ = victim.Wait()
	}()
	before, err := snapshots(w, f)
	if err != nil {
		return answer{}, nil, err
	}
	process, err := escape.ProcessSnapshot(victim.Process.Pid)
	if err != nil {
		return answer{}, nil, err
	}
	a, err := run(base, []string{Verb, "probes", f.Name, base, strconv.Itoa(victim.Process.Pid)})
	if err != nil {
		return a, nil, err
	}
	effects := map[string]bool{}
	for _, p := range f.Probes {
		effects[p.Name()] = p.Got(escape.SceneOf(base, p))
	}
	if changed == nil {
		return a, effects, nil
	}
	after, err := snapshots(w, f)
	if err != nil {
		return a, nil, err
	}
	if !maps.Equal(before, after) {
		*changed = escape.Difference(before, after)
	}
	if now, err := escape.ProcessSnapshot(victim.Process.Pid); err != nil || now != process {
		*changed = append(*changed, "a process outside")
	}
	return a, effects, nil
}

func snapshots(w *escape.World, f escape.Family) (map[string]string, error) {
	seen, err := escape.Snapshot(w.Out)
	if err != nil || !f.Read {
		return seen, err
	}
	workspace, err := escape.Snapshot(w.Workspace)
	maps.Copy(seen, workspace)
	return seen, err
}

func environment(base string) []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + base + "/home", "TMPDIR=" + base + "/private/tmp"}
}

// wrap starts a wrapper and waits for its answer.
func (o Options) wrap(ctx context.Context, j job) (answer, error) {
	var a answer
	cmd, err := o.wrapper(ctx, j)
	if err != nil {
		return a, err
	}
	out, err := cmd.Output()
	if err != nil {
		return a, fmt.Errorf("wrapper: %w", err)
	}
	if err := json.Unmarshal(out, &a); err != nil {
		return a, fmt.Errorf("wrapper: %w", err)
	}
	if a.Err != "" {
		return a, &errcode.Error{Msg: a.Err, Code: a.Code, Details: a.Details}
	}
	return a, nil
}

func (o Options) wrapper(ctx context.Context, j job) (*exec.Cmd, error) {
	raw, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, o.Self, Verb, "wrap")
	cmd.Stdin, cmd.Env, cmd.Dir = bytes.NewReader(raw), environment(j.Base), j.Base
	cmd.WaitDelay = time.Second
	return cmd, nil
}

// Main is a process of a self-test. It returns the exit status.
func Main(args []string) int {
	err := errors.New("it is started by a self-test only")
	switch {
	case len(args) == 1 && args[0] == "wrap":
		err = wrapMain()
	case len(args) == 1 && args[0] == "victim":
		time.Sleep(patience * 4)
		return 0
	case len(args) == 4 && args[0] == "probes":
		victim, _ := strconv.Atoi(args[3])
		err = escape.Try(os.Stdout, args[1], args[2], victim)
	case len(args) == 3 && args[0] == "leave":
		err = leave(args[1], args[2] == "stay")
	case len(args) == 2 && args[0] == "left":
		err = left(args[1])
	}
	if err != nil {
		os.Stderr.WriteString("atip: self-test: " + err.Error() + "\n")
		return 1
	}
	return 0
}

func wrapMain() error {
	var j job
	if err := json.NewDecoder(os.Stdin).Decode(&j); err != nil {
		return err
	}
	a := start(j)
	return json.NewEncoder(os.Stdout).Encode(a)
}

// start is one run under the policy, as a command of an agent would be.
func start(j job) (a answer) {
	fail := func(err error) answer {
		a.Err, a.Code = err.Error(), errcode.Internal
		var coded interface {
			FaultCode() string
			FaultDetails() map[string]any
		}
		if errors.As(err, &coded) {
			a.Code, a.Details = coded.FaultCode(), coded.FaultDetails()
		}
		return a
	}
	host, err := sandbox.Probe(sandbox.Cache{Dir: j.State, Executable: j.Self})
	if err != nil {
		return fail(err)
	}
	in := sandbox.Input{Workspace: j.Base + "/ws", Cwd: j.Base + "/ws", Home: j.Base + "/home", Private: j.Base + "/private",
		PathDirs: []string{"/usr/bin", "/bin"}, Exec: []string{j.Self}, Root: os.Geteuid() == 0, Policy: j.Policy, Names: j.Names, OrgBound: j.Read}
	if !j.Read {
		in.Granted = in.Granted.With(1) // write
	}
	if j.Limit {
		in.Policy.Limits.OpenFiles = escape.OpenFiles
	}
	var serve func([]sandbox.Listener)
	switch j.Net {
	case escape.Loopback:
		in.Net.Mode = sandbox.NetLoopback
	case escape.Allowlist:
		rules, err := proxy.Compile(proxy.Config{Allow: []string{escape.ListedHost}})
		if err != nil {
			return fail(err)
		}
		in.Net = sandbox.Net{Mode: sandbox.NetAllowlist, Allow: []string{escape.ListedHost}}
		server := proxy.New(rules)
		defer server.Close()
		serve = func(list []sandbox.Listener) {
			for _, l := range list {
				if l.Service == "http" {
					server.ServeHTTP(l.File)
				} else {
					server.ServeSOCKS(l.File)
				}
			}
		}
	case escape.Full:
		in.Net.Mode = sandbox.NetFull
	}
	profile, err := sandbox.Derive(in)
	if err != nil {
		return fail(err)
	}
	setup, err := sandbox.Select(profile, host)
	if err != nil {
		return fail(err)
	}
	a.Receipt, a.Private = setup.Receipt(), setup.Tier() == sandbox.T3
	r, w, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer r.Close()
	proc, err := sandbox.Start(context.Background(), profile, setup, sandbox.Cmd{Path: j.Self, Argv: append([]string{"atip"}, j.Argv...),
		Dir: j.Base + "/ws", Env: environment(j.Base), Stdout: w, Stderr: w, Serve: serve})
	w.Close()
	if err != nil {
		return fail(err)
	}
	out := make(chan string, 1)
	go func() {
		var text bytes.Buffer
		_, _ = text.ReadFrom(r)
		out <- text.String()
	}()
	exit, err := proc.Wait()
	proc.Sweep()
	if err != nil {
		return fail(err)
	}
	a.Out, a.Exit = <-out, exit.Code
	return a
}
