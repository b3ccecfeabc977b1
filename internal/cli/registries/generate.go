package registries

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/generate"
	"github.com/atip-dev/atip-exec/internal/scan"
	"github.com/atip-dev/atip-exec/shims"
)

const generateLimit = time.Minute

// GenerateVerb writes metadata from what a tool says of itself: its help, its manual
// page, its completions. The tool runs in the sandbox of a probe; what it prints is text
// to read and nothing more.
func GenerateVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) != 1 {
		return 0, fault.New(errcode.Arguments, "generate needs one tool").WithFix("name a tool or the path of an executable", "atip generate mytool")
	}
	for _, from := range v.All("from") {
		if from != "help" && from != "man" && from != "completion" {
			return 0, fault.New(errcode.FlagValue, "--from "+from+" is not help, man or completion").WithFix("choose one of them", "--from man")
		}
	}
	dirs, at, err := answer.Home()
	if err != nil {
		return 0, err
	}
	s, err := answer.SubjectOf(v.Rest[0])
	if err != nil {
		return 0, err
	}
	if s.Path == "" || s.Digest == "" {
		return 0, fault.New(errcode.NoInputFile, v.Rest[0]+" is not installed, or cannot be read").WithFix("name a tool or the path of an executable", "")
	}
	ctx, done := cli.Limited(generateLimit)
	defer done()
	line := answer.NewProgress(c)
	q := questions{
		ctx: ctx, subject: s, line: line,
		prober: scan.Prober{Self: caller.Here().Self, State: dirs.State, Cache: dirs.Cache, Home: dirs.Home},
	}
	root, method, err := q.answer(v.All("from"))
	line.Clear()
	if err != nil {
		return 0, fault.New(errcode.GuaranteeMissing, s.Name+" could not be asked: "+err.Error())
	}
	if len(root.Kids) == 0 && len(root.Help.Options) == 0 {
		return 0, fault.New(errcode.MetadataStructure, s.Name+" names no command and no option in "+strings.Join(q.asked, ", ")).WithFix("write the document by hand; docs/metadata.md shows how", "")
	}
	version, _, err := q.prober.Text(ctx, s.Path, s.Digest, "--version")
	if err != nil {
		version = ""
	}
	doc := generate.Document(generate.Subject{Name: filepath.Base(s.Path), Version: generate.VersionOf(version), Digest: s.Digest, Platform: runtime.GOOS + "-" + runtime.GOARCH, Method: method}, root, time.Now())
	raw, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return 0, fault.New(errcode.Internal, err.Error())
	}
	raw = append(raw, '\n')
	if _, err := shims.Admit(raw, s.Digest, true); err != nil {
		return 0, err
	}
	if v.Has("install") {
		path := at.ShimPath(s.Digest)
		if _, err := os.Lstat(path); err == nil {
			return 0, fault.New(errcode.MetadataUnsafe, path+" exists already").WithFix("compare the two with `atip diff`, and remove one", "")
		}
		if err := shims.Store(path, raw, nil, shims.Meta{ProbedAt: time.Now().UTC()}); err != nil {
			return 0, err
		}
		return 0, c.Answer(map[string]any{"kind": "atip-exec.generate/1", "path": path, "sha256": s.Digest}, "wrote "+answer.Plain(path)+"\n")
	}
	return 0, c.Text(string(raw))
}

// questions asks a tool about itself, each source once.
type questions struct {
	ctx     context.Context
	subject answer.Subject
	prober  scan.Prober
	line    *answer.Progress
	runs    int
	asked   []string // sources that were
}

// answer joins what the named sources say; without names the first that says something
// counts.
func (q *questions) answer(sources []string) (root generate.Node, method string, err error) {
	all := len(sources) > 0
	if !all {
		sources = []string{"help", "completion", "man"}
	}
	for _, source := range sources {
		q.asked = append(q.asked, source)
		found, err := q.from(source, root.Help)
		if err != nil {
			return root, method, err
		}
		if len(found.Kids) == 0 && len(found.Help.Options) == 0 {
			continue
		}
		if method == "" {
			root, method = found, methods(source)
		} else {
			root, method = generate.Merge(root, found), method+"+"+methods(source)
		}
		if !all {
			break
		}
	}
	return root, method, nil
}

// methods names a source as _generation does.
func methods(source string) string {
	switch source {
	case "help":
		return "help-parsing"
	case "man":
		return "man-page"
	}
	return "completion"
}

func (q *questions) from(source string, known generate.Help) (generate.Node, error) {
	name := filepath.Base(q.subject.Path)
	progress := func(words []string) {
		q.runs++
		q.line.Show(q.runs, q.runs+1, q.subject.Name+" "+strings.Join(words, " ")+" ("+source+")")
	}
	ask := func(ctx context.Context, words ...string) (string, string, error) {
		return q.prober.Text(ctx, q.subject.Path, q.subject.Digest, words...)
	}
	switch source {
	case "help":
		return generate.Walk(q.ctx, ask, progress)
	case "man":
		root, _ := generate.Man(name, generate.ManDirs(q.subject.Path))
		return root, nil
	}
	if known.Framework == "" && len(known.Options) == 0 {
		// Which convention to follow hangs on what the tool is made with.
		if text, why, err := ask(q.ctx, "--help"); err != nil {
			return generate.Node{}, err
		} else if why == "" {
			known = generate.Parse(text)
		}
	}
	with := func(ctx context.Context, env []string, words ...string) (string, string, error) {
		return q.prober.TextWith(ctx, q.subject.Path, q.subject.Digest, env, words...)
	}
	return generate.Completion(q.ctx, with, name, known, generate.ScriptDirs(q.subject.Path), progress)
}
