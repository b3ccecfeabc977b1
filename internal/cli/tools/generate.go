package tools

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/generate"
	"github.com/atip-dev/atip-exec/internal/run"
	"github.com/atip-dev/atip-exec/internal/scan"
	"github.com/atip-dev/atip-exec/shims"
)

const generateLimit = time.Minute

// generateVerb writes metadata from the help of a tool. The tool runs in the sandbox of
// a probe; what it prints is text to read and nothing more.
func generateVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) != 1 {
		return 0, fault.New("E1004", "generate needs one tool").WithFix("name a tool or the path of an executable", "atip generate mytool")
	}
	dirs, at, err := home()
	if err != nil {
		return 0, err
	}
	s, err := subjectOf(v.Rest[0])
	if err != nil {
		return 0, err
	}
	if s.Path == "" || s.Digest == "" {
		return 0, fault.New("E1005", v.Rest[0]+" is not installed, or cannot be read").WithFix("name a tool or the path of an executable", "")
	}
	prober := scan.Prober{Self: run.Here().Self, State: dirs.State, Cache: dirs.Cache, Home: dirs.Home}
	ask := func(ctx context.Context, words ...string) (string, string, error) {
		return prober.Text(ctx, s.Path, s.Digest, words...)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, generateLimit)
	defer cancel()
	line := newProgress(c)
	asked := 0
	root, err := generate.Walk(ctx, ask, func(words []string) {
		asked++
		line.show(asked, asked+1, s.Name+" "+strings.Join(words, " ")+" --help")
	})
	line.clear()
	if err != nil {
		return 0, fault.New("E4101", s.Name+" could not be asked: "+err.Error())
	}
	if len(root.Help.Commands) == 0 && len(root.Help.Options) == 0 {
		return 0, fault.New("E1103", s.Name+" --help prints nothing that names a command or an option").WithFix("write the document by hand; docs/metadata.md shows how", "")
	}
	version, _, err := ask(ctx, "--version")
	if err != nil {
		version = ""
	}
	name := filepath.Base(s.Path)
	doc := generate.Document(generate.Subject{Name: name, Version: generate.VersionOf(version), Digest: s.Digest, Platform: runtime.GOOS + "-" + runtime.GOARCH}, root, time.Now())
	raw, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return 0, fault.New("E5001", err.Error())
	}
	raw = append(raw, '\n')
	if _, err := shims.Admit(raw, s.Digest, true); err != nil {
		return 0, err
	}
	if v.Has("install") {
		path := at.ShimPath(s.Digest)
		if _, err := os.Lstat(path); err == nil {
			return 0, fault.New("E1106", path+" exists already").WithFix("compare the two with `atip diff`, and remove one", "")
		}
		if err := shims.Store(path, raw, nil, shims.Meta{ProbedAt: time.Now().UTC()}); err != nil {
			return 0, err
		}
		if c.Documents() {
			return 0, c.Document(map[string]any{"kind": "atip-exec.generate/1", "path": path, "sha256": s.Digest})
		}
		return 0, c.Text("wrote " + plain(path) + "\n")
	}
	return 0, c.Text(string(raw))
}
