package effects

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// sink says by which ways a step takes code in.
type sink uint8

const (
	sinkStdin  sink = 1 << iota // a program text on standard input
	sinkWord                    // a program text in its words, or a file that is a pipe
	sinkSocket                  // its descriptors are a connection
)

// note marks a step as one that runs what flows into it.
func (c *collector) note(s *step.Step, k sink) {
	if c.sinks == nil {
		c.sinks = map[*step.Step]sink{}
	}
	c.sinks[s] |= k
}

// written is a file that a step writes, with its content if that is constant.
type written struct {
	by      *step.Step
	content *string
}

// wrote remembers who writes a file, for whoever runs it later.
func (c *collector) wrote(s *step.Step, abs string, content *string) {
	if abs == "" {
		return
	}
	if c.writers == nil {
		c.writers = map[string][]written{}
	}
	c.writers[abs] = append(c.writers[abs], written{s, content})
}

// constantText is all that was written to a file, one after the other, if all of it is
// constant.
func constantText(list []written) (string, bool) {
	var b strings.Builder
	for _, w := range list {
		if w.content == nil {
			return "", false
		}
		b.WriteString(*w.content)
		b.WriteByte('\n')
	}
	return b.String(), true
}

// wroteAll remembers the files that a call itself writes.
func (c *collector) wroteAll(s *step.Step) {
	if c.ctx == nil || step.KeepsContent(s) {
		return
	}
	c.wroteFetched(s)
	for _, r := range s.Call.Resources {
		if r.Kind == "path" && r.Access&atip.AccessWrite != 0 && r.Abs != "" {
			content := (*string)(nil)
			if s.Call.Tool == "tee" {
				content = c.ctx.stdin
			}
			c.wrote(s, r.Abs, content)
		}
	}
}

// wroteFetched remembers the files that a download names after what it fetches.
func (c *collector) wroteFetched(s *step.Step) {
	switch s.Call.Tool {
	case "wget":
		if step.UsesOption(s, "output-document", "spider") {
			return
		}
	case "curl":
		if !step.UsesOption(s, "remote-name", "remote-name-all") {
			return
		}
	default:
		return
	}
	dir := subpath.Join(s.Cwd, s.Call.Chdir)
	for _, o := range s.Call.Options {
		if (o.Name == "directory-prefix" || o.Name == "output-dir") && strings.IndexByte(o.Value, 0) < 0 {
			dir = subpath.Join(dir, o.Value)
		}
	}
	for _, p := range s.Call.Positionals {
		url, _, _ := strings.Cut(p.Value, "?")
		_, rest, _ := strings.Cut(url, "://")
		if slash := strings.LastIndexByte(rest, '/'); slash >= 0 && slash+1 < len(rest) && strings.IndexByte(rest, 0) < 0 {
			c.wrote(s, filepath.Join(dir, rest[slash+1:]), nil)
		}
	}
}

// runsFile judges a file that a step runs and that the text itself wrote before.
func (c *collector) runsFile(s *step.Step, file string, isShell bool, via []string) (handled bool, err error) {
	r := atip.Resource{Kind: "path", Value: file, Access: atip.AccessRead}
	c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir))
	list := c.writers[r.Abs]
	if len(list) == 0 || r.Abs == "" {
		if isShell {
			c.peek(s, r.Abs)
		}
		return false, nil
	}
	if c.ofWorkspace(r.Abs) && !slices.ContainsFunc(list, func(w written) bool { return !c.derived(w.by, 0) }) {
		s.RunsCode = max(s.RunsCode, policy.CodeProject)
		for _, w := range list {
			for _, from := range w.by.Call.Resources {
				if isShell && from.Abs != r.Abs {
					c.peek(s, from.Abs)
				}
			}
		}
		return true, nil
	}
	text, ok := constantText(list)
	if ok && !isShell && strings.IndexByte(text, 0) < 0 && c.ofWorkspace(r.Abs) {
		// As code that lay there before; writtenCode reads the text.
		s.RunsCode = max(s.RunsCode, policy.CodeProject)
		return true, nil
	}
	if ok && isShell {
		if _, err := os.Lstat(r.Abs); err == nil {
			// It may also hold what was there before.
			s.RunsCode = max(s.RunsCode, policy.CodeProject)
		}
		return true, c.shell(s, text, via)
	}
	s.RunsCode = policy.CodeOpaque
	for _, w := range list {
		c.fileEdge(w.by, s)
	}
	return true, nil
}

// runsWritten judges a program that the text itself wrote before.
func (c *collector) runsWritten(s *step.Step) error {
	abs := s.ID.Canonical
	if s.Missing != nil && strings.IndexByte(s.Argv[0], '/') >= 0 {
		abs = filepath.Clean(subpath.Join(s.Cwd, s.Argv[0]))
	}
	list := c.writers[abs]
	if len(list) > 0 && c.ofWorkspace(abs) {
		list = slices.DeleteFunc(slices.Clone(list), func(w written) bool { return c.codeOfWorkspace(w, 0) })
		if len(list) == 0 {
			s.RunsCode = max(s.RunsCode, policy.CodeProject)
		}
	}
	if len(list) == 0 || abs == "" {
		if s.File.InWorkspace {
			c.peek(s, abs)
		}
		return nil
	}
	_, err := os.Lstat(abs) // what lay there may stay a part of it
	if text, ok := constantText(list); ok && err != nil && strings.IndexByte(text, 0) < 0 && c.ofWorkspace(abs) {
		s.RunsCode = max(s.RunsCode, policy.CodeProject)
		if step.OtherLanguage(text) {
			return nil // writtenCode reads it
		}
		// A text without "#!" is run by the shell; what it would do counts.
		at := len(c.steps)
		if err := c.shell(s, text, s.Via); err == nil {
			return nil
		}
		c.steps = c.steps[:at]
	}
	s.RunsCode = policy.CodeOpaque
	for _, w := range list {
		c.fileEdge(w.by, s)
	}
	return nil
}

func (c *collector) fileEdge(from, to *step.Step) {
	c.fileEdges = append(c.fileEdges, [2]*step.Step{from, to})
}

// stepRange is the steps of one command.
type stepRange struct{ from, to int }

// links are the flows of one text.
type links struct {
	c      *collector
	script *shell.Script
	ranges []stepRange
}

// fed reports whether anything flows into a command.
func (l *links) fed(i int) bool {
	return slices.ContainsFunc(l.script.Flows, func(f shell.Flow) bool { return f.To == i && f.Kind <= shell.FlowCode })
}

func (l *links) steps(i int) []*step.Step { return l.c.steps[l.ranges[i].from:l.ranges[i].to] }

// connect turns flows that are dangerous as a whole into edges.
func (l *links) connect() {
	for i := range l.script.Commands {
		l.into(i)
	}
	for _, f := range l.script.Flows {
		switch f.Kind {
		case shell.FlowForkBomb:
			l.c.edge(l.ranges[f.To].from, l.ranges[f.To].from, policy.ForkBomb)
		case shell.FlowSocket:
			l.c.edge(l.ranges[f.To].from, l.ranges[f.To].from, policy.SocketShell)
		}
	}
	for k := range l.c.fileEdges {
		l.fileEdge(l.c.fileEdges[k][0], l.c.fileEdges[k][1])
	}
	l.c.fileEdges = nil
}

// before lists the commands whose output can reach command i, through the given
// kinds of flow at the end.
func (l *links) before(i int, last ...shell.FlowKind) []int {
	var out []int
	var visit func(i int, kinds []shell.FlowKind)
	visit = func(i int, kinds []shell.FlowKind) {
		for _, f := range l.script.Flows {
			if f.To == i && f.From != i && slices.Contains(kinds, f.Kind) && !slices.Contains(out, f.From) {
				out = append(out, f.From)
				visit(f.From, []shell.FlowKind{shell.FlowStdin, shell.FlowWord, shell.FlowCode})
			}
		}
	}
	visit(i, last)
	return out
}

// into finds what must not flow into command i.
func (l *links) into(i int) {
	c := l.c
	for n, s := range l.steps(i) {
		to := l.ranges[i].from + n
		k := c.sinks[s]
		if k&sinkSocket != 0 && (step.IsShell(s.ID.Effective) || step.IsShell(s.Call.Tool)) {
			c.edge(to, to, policy.SocketShell)
		}
		var kinds []shell.FlowKind
		if k&sinkStdin != 0 {
			kinds = append(kinds, shell.FlowStdin)
		}
		if k&sinkWord != 0 {
			kinds = append(kinds, shell.FlowWord, shell.FlowCode)
		}
		if kinds != nil {
			l.code(l.before(i, kinds...), to)
		}
		if s.Call.Effects[atip.Network].Value == atip.Yes || k&sinkSocket != 0 {
			for _, from := range l.before(i, shell.FlowStdin, shell.FlowWord) {
				l.secret(from, to)
			}
		}
	}
}

func (l *links) code(from []int, to int) {
	for _, i := range from {
		for n, s := range l.steps(i) {
			at := l.ranges[i].from + n
			if s.Call.Effects[atip.Network].Value == atip.Yes {
				l.c.edge(at, to, policy.NetworkToCode)
			}
			if step.Decodes(s) {
				l.c.edge(at, to, policy.DecodedToCode)
			}
		}
	}
}

func (l *links) secret(from, to int) {
	for n, s := range l.steps(from) {
		if step.Reads(s) {
			l.c.edge(l.ranges[from].from+n, to, policy.SecretToNetwork)
		}
	}
}

// fileEdge is a file that one step wrote and another runs.
func (l *links) fileEdge(from, to *step.Step) {
	a, b := slices.Index(l.c.steps, from), slices.Index(l.c.steps, to)
	if a < 0 || b < 0 {
		return
	}
	kind := policy.WrittenToCode
	if from.Call.Effects[atip.Network].Value == atip.Yes {
		kind = policy.NetworkToCode
	} else if step.Decodes(from) {
		kind = policy.DecodedToCode
	}
	l.c.edge(a, b, kind)
	for i := range l.ranges {
		if a < l.ranges[i].from || a >= l.ranges[i].to {
			continue
		}
		l.code(l.before(i, shell.FlowStdin, shell.FlowWord, shell.FlowCode), b)
	}
}

func (c *collector) edge(from, to int, kind policy.EdgeKind) {
	e := policy.Edge{From: from, To: to, Kind: kind}
	if !slices.Contains(c.edges, e) {
		c.edges = append(c.edges, e)
	}
}

// maxTails bounds how many words of one step are tried as the beginning of a command.
const maxTails = 12

// tails looks for commands in the words of a step of which nobody knows what it runs: a
// wrapper without metadata (`newwrapper -n 5 rm -rf ~`), an option with a text that its
// tool runs (`gdb -ex 'shell rm -rf ~'`). Such a step asks whatever they are, so they can
// only make it stricter and say what it would do.
func (c *collector) tails(s *step.Step) {
	unknown := s.Call.Provenance.Channel == "none" && s.RunsCode == policy.CodeNone
	opaque := s.RunsCode == policy.CodeOpaque || s.Call.Effects[atip.ExecOpaque].Value != atip.No && s.RunsCode == policy.CodeNone
	if c.peeking || len(s.Argv) < 2 {
		return
	}
	if unknown || opaque || s.RunsCode != policy.CodeNone {
		c.handedSecrets(s)
		c.handedOutputs(s)
	}
	if !unknown && !opaque && s.RunsCode == policy.CodeInline && !step.HasHole(s.Argv) {
		c.handedCommand(s)
	}
	if !unknown && !opaque || step.HasHole(s.Argv) {
		return
	}
	sub := &collector{site: c.site, out: c.out, path: c.path, found: c.found, steps: []*step.Step{s}, peeking: true, depth: maxPeekDepth}
	cwd := subpath.Join(s.Cwd, s.Call.Chdir)
	for i := 1; i < len(s.Argv) && i <= maxTails; i++ {
		if step.TellTale(s.Argv[i]) && i+1 < len(s.Argv) {
			_ = sub.add(s.Argv[i:], s.Via, cwd, policy.Exact)
			break
		}
	}
	if opaque {
		for _, w := range s.Argv[1:] {
			for _, text := range step.CommandTexts(w) {
				word, _, more := strings.Cut(text, " ")
				if !more || !step.TellTale(word) {
					continue
				}
				if script, err := shell.Read(text, sub.options(cwd)); err == nil {
					_ = sub.script(s, script, s.Via)
				}
			}
		}
	}
	s.ShowEffects(sub.steps[1:])
	if s.Call.Effects[atip.Network].Value != atip.Yes || unknown {
		c.hide(sub) // else the paths may be those of another machine
	}
	s.ShowVerbs()
}

// handedSecrets adds the secrets of the home directory, and of the system, that are handed to
// code: what it does with them is not known, and reading them is the least.
func (c *collector) handedSecrets(s *step.Step) {
	if step.IsShell(s.Call.Tool) || s.Call.Tool == "ssh" {
		return
	}
	for _, w := range s.Argv[1:] {
		if name, value, ok := strings.Cut(w, "="); ok && strings.HasPrefix(name, "-") {
			w = value
		}
		if w = strings.TrimPrefix(w, "@"); !strings.HasPrefix(w, "/") && !strings.HasPrefix(w, "~/") || strings.IndexByte(w, 0) >= 0 {
			continue
		}
		r, ok := c.guarded(s, w)
		if !ok || r.Class != atip.ClassSecret || subpath.Within(r.Abs, c.site.Workspace) {
			continue
		}
		s.Raise(r)
		s.Call.Resources = append(s.Call.Resources, r)
	}
}

// handedCommand asks where a program text is handed the words of a command that deletes:
// python3 -c 'subprocess.run(sys.argv[1:])' rm -rf x.
func (c *collector) handedCommand(s *step.Step) {
	sub := &collector{site: c.site, out: c.out, path: c.path, found: c.found, steps: []*step.Step{s}, peeking: true, depth: maxPeekDepth}
	for i := 2; i+1 < len(s.Argv); i++ {
		if step.TellTale(s.Argv[i]) && step.ContainsAny(s.Argv[i-1], "argv", "ARGV", "$@") {
			_ = sub.add(s.Argv[i:], s.Via, subpath.Join(s.Cwd, s.Call.Chdir), policy.Exact)
			break
		}
	}
	if step.Removes(sub.steps[1:]) {
		s.RunsCode = policy.CodeOpaque
		s.ShowEffects(sub.steps[1:])
	}
	c.hide(sub)
}

// handedOutputs adds files outside of the workspace that code is told to write: the kernel
// keeps it from that, so a person is asked beforehand.
func (c *collector) handedOutputs(s *step.Step) {
	for i, w := range s.Argv[1:] {
		name, value, attached := strings.Cut(w, "=")
		if !attached {
			name, value = s.Argv[i], w
		}
		if i == 0 && !attached || !step.OutputOption(name) || strings.IndexByte(value, 0) >= 0 || !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "~/") && !strings.HasPrefix(value, "../") {
			continue
		}
		r := atip.Resource{Kind: "path", Value: value, Access: atip.AccessWrite, Why: name}
		switch c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir)); r.Class {
		case atip.ClassStartup, atip.ClassSecret, atip.ClassPolicySelf, atip.ClassDevice, atip.ClassSystem, atip.ClassOutside, atip.ClassRoot:
			if !step.HarmlessFile(value) {
				s.Raise(r)
				s.Call.Resources = append(s.Call.Resources, r)
			}
		}
	}
}
