package scan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/excerpt"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/trust"
)

// A probe runs in a process of its own: a process that has confined a child is tied to
// it until the end, and several tools are asked at once.
//
//	scan ──exec──► atip __probe PATH DIGEST ARGS… ──sandbox──► PATH ARGS…
//	               stdout: the child's, as it is
//	               stderr: one line of JSON, the outcome

// ProbeVerb is the first word that makes our own program a probe. It is no verb: it has
// no help, and nothing it does is not confined.
const ProbeVerb = "__probe"

const (
	probeTime  = 2 * time.Second
	probeBytes = 4 << 20
)

// outcome is what a probe says about itself.
type outcome struct {
	Error string `json:"error,omitempty"` // it could not be made
	Why   string `json:"why,omitempty"`   // the tool's failure
	Large bool   `json:"large,omitempty"`
	Tier  string `json:"tier,omitempty"`
	Exit  int    `json:"exit,omitempty"`
}

// Prober starts probes with the program self.
type Prober struct {
	Self  string
	State string // of our own, for what is known of the machine
	Cache string // below it each probe has a directory that is removed again
	Home  string // of the user: nothing below it but the tool's own directory is read
}

// scriptFD is the descriptor by which an interpreter opens a script of the probe.
const scriptFD = 10

// Ask runs PATH --agent, and if the answer is too large, with --depth=1.
func (p Prober) Ask(ctx context.Context, c Candidate, digest string) (Answer, error) {
	raw, o, err := p.start(ctx, c.Path, digest, probeBytes, false, nil, "--agent")
	if err == nil && o.Large {
		raw, o, err = p.start(ctx, c.Path, digest, probeBytes, false, nil, "--agent", "--depth=1")
	}
	if err != nil {
		return Answer{}, err
	}
	if o.Large {
		o.Why = "its answer is larger than 4 MiB"
	}
	return Answer{Raw: raw, Why: o.Why}, nil
}

// start runs a program in the sandbox of a probe and returns what it wrote on stdout,
// or on both of its streams.
func (p Prober) start(ctx context.Context, path, digest string, limit int, both bool, set []string, args ...string) ([]byte, outcome, error) {
	// The sandbox ends the child; this end is for the case that it does not.
	ctx, cancel := context.WithTimeout(ctx, probeTime+8*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Self, append([]string{ProbeVerb, path, digest}, args...)...)
	cmd.Env = []string{"ATIP_PROBE_STATE=" + p.State, "ATIP_PROBE_CACHE=" + p.Cache, "ATIP_PROBE_HOME=" + p.Home, "PATH=/usr/bin:/bin"}
	if both {
		cmd.Env = append(cmd.Env, "ATIP_PROBE_STDERR=1")
	}
	if len(set) > 0 {
		list, err := json.Marshal(set)
		if err != nil {
			return nil, outcome{}, err
		}
		cmd.Env = append(cmd.Env, "ATIP_PROBE_SET="+string(list))
	}
	cmd.WaitDelay = time.Second
	stdout, stderr := excerpt.Head{Limit: limit}, excerpt.Head{Limit: 64 << 10}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var o outcome
	line := bytes.TrimSpace(stderr.Kept)
	if json.Unmarshal(line, &o) != nil {
		if err == nil {
			err = errors.New("the probe said nothing")
		}
		return nil, o, fmt.Errorf("probe of %s: %w: %.200s", path, err, line)
	}
	if o.Error != "" {
		return nil, o, errors.New(o.Error)
	}
	o.Large = stdout.Over
	return stdout.Kept, o, nil
}

// ProbeMain is the probe's process. args are PATH, DIGEST and the words for the tool.
func ProbeMain(args []string) int {
	o, err := probeOnce(args)
	if err != nil {
		o.Error = err.Error()
	}
	line, _ := json.Marshal(o)
	os.Stderr.Write(append(line, '\n'))
	if o.Error != "" {
		return 1
	}
	return 0
}

func probeOnce(args []string) (o outcome, err error) {
	// Without a word the tool would just run; click alone is asked by variables.
	if len(args) < 2 || len(args) == 2 && len(completionVariables(os.Getenv("ATIP_PROBE_SET"))) == 0 {
		return o, errors.New("a probe needs a path, a digest and words")
	}
	path, digest := args[0], args[1]
	file, err := trust.Opener{TmpDirs: []string{os.TempDir()}}.Open(path, nil, "/")
	if err != nil {
		return o, err
	}
	defer file.Close()
	id := file.Identity()
	if id.Digest != digest {
		return o, errors.New(path + " is another file than the one that was looked up")
	}
	host, err := sandbox.Probe(sandbox.Cache{Dir: os.Getenv("ATIP_PROBE_STATE"), Executable: selfPath()})
	if err != nil {
		return o, err
	}
	if can := sandbox.Enforceable(host); !can.Files || !can.Net {
		return o, errors.New("this machine cannot confine: " + host.Landlock)
	}
	cache := os.Getenv("ATIP_PROBE_CACHE")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return o, err
	}
	dir, err := os.MkdirTemp(cache, "probe-")
	if err != nil {
		return o, err
	}
	defer os.RemoveAll(dir)
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		return o, err
	}
	profile, setup, err := tightest(host, id, dir)
	if err != nil {
		return o, err
	}
	o.Tier = setup.Tier().String()
	return o, startProbe(&o, file, profile, setup, dir, append([]string{id.Argv0}, args[2:]...))
}

// tightest is the profile of every probe: one empty directory to write, the system and
// the tool's own directory to read, no network.
func tightest(host sandbox.Host, id trust.Identity, dir string) (sandbox.Profile, sandbox.Setup, error) {
	in := sandbox.Input{Cwd: dir, Home: dir, Private: dir, Subprocess: atip.Unknown, Root: os.Geteuid() == 0}
	for _, part := range id.Chain {
		in.Exec = append(in.Exec, part.Path)
	}
	home, own := os.Getenv("ATIP_PROBE_HOME"), filepath.Dir(id.Canonical)
	if home == "" || own != home && !strings.HasPrefix(home, strings.TrimSuffix(own, "/")+"/") {
		in.Policy.Read = []sandbox.PathRule{{Path: own, Pos: "probe", Rule: "own directory"}}
	}
	profile, err := sandbox.Derive(in)
	if err != nil {
		return profile, sandbox.Setup{}, err
	}
	setup, err := sandbox.Select(profile, host)
	var gap *sandbox.GapError
	if errors.As(err, &gap) {
		// Without namespaces names and command lines stay visible, as they do in a run
		// of the built-in policy; files and network are confined all the same.
		profile.Accept = sandbox.BuiltinAccept()
		setup, err = sandbox.Select(profile, host)
	}
	return profile, setup, err
}

func startProbe(o *outcome, file *trust.File, p sandbox.Profile, s sandbox.Setup, dir string, argv []string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	if err := file.Recheck(); err != nil {
		w.Close()
		return err
	}
	path, byDescriptor, opened := file.Start()
	cmd := sandbox.Cmd{Path: path, ByDescriptor: byDescriptor, File: opened, Argv: argv, Dir: dir, Stdin: null, Stdout: w, Stderr: null, Check: file.CheckStarted,
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + filepath.Join(dir, "tmp"), "LANG=C.UTF-8"}}
	if os.Getenv("ATIP_PROBE_STDERR") != "" {
		cmd.Stderr = w
	}
	cmd.Env = append(cmd.Env, completionVariables(os.Getenv("ATIP_PROBE_SET"))...)
	if file.Inherit() {
		cmd.Pass, cmd.ByDescriptor, cmd.Path = map[int]*os.File{scriptFD: opened}, false, "/proc/self/fd/"+strconv.Itoa(scriptFD)
	}
	proc, err := sandbox.Start(context.Background(), p, s, cmd)
	w.Close()
	if err != nil {
		var exec *sandbox.ExecError
		if errors.As(err, &exec) {
			o.Why = err.Error()
			return nil
		}
		return err
	}
	file.StartedOK()
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(os.Stdout, r)
		copied <- err
	}()
	timer := time.NewTimer(probeTime)
	defer timer.Stop()
	select {
	case <-proc.Done():
	case <-timer.C:
		o.Why = "did not answer within " + probeTime.String()
		proc.KillTree(0)
	}
	exit, err := proc.Wait()
	proc.Sweep()
	if err != nil {
		return err
	}
	select {
	case <-copied:
	case <-time.After(probeTime):
		// Whoever still holds the pipe is not the tool.
		r.Close()
	}
	if o.Why == "" && exit.Code != 0 {
		o.Exit, o.Why = exit.Code, fmt.Sprintf("answered with status %d", exit.Code)
	}
	return nil
}

// completionVariables are those by which click is asked for completions; no other can
// be set for a probe.
func completionVariables(list string) []string {
	var set, out []string
	if list == "" || json.Unmarshal([]byte(list), &set) != nil {
		return nil
	}
	for _, v := range set {
		name, _, _ := strings.Cut(v, "=")
		own := strings.HasPrefix(name, "_") && strings.HasSuffix(name, "_COMPLETE")
		if (own || name == "COMP_WORDS" || name == "COMP_CWORD") && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" && strings.IndexByte(v, 0) < 0 {
			out = append(out, v)
		}
	}
	return out
}

func selfPath() string {
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		path, _ = os.Executable()
	}
	return path
}

// Text runs a program as a probe does and returns what it printed on either stream; why
// says that it gave no usable answer. Many tools print their help as an error, so a
// status counts only if nothing was printed.
func (p Prober) Text(ctx context.Context, path, digest string, args ...string) (text, why string, err error) {
	return p.TextWith(ctx, path, digest, nil, args...)
}

// TextWith is Text with the variables by which click is asked for completions.
func (p Prober) TextWith(ctx context.Context, path, digest string, set []string, args ...string) (text, why string, err error) {
	raw, o, err := p.start(ctx, path, digest, 1<<20, true, set, args...)
	if o.Exit != 0 && len(raw) > 0 {
		o.Why = ""
	}
	return string(raw), o.Why, err
}
