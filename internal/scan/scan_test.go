package scan

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
)

const answer = `{"atip":"0.6","name":"t","version":"1","description":"d"}`

// TestEachDigestIsAskedOnce counts probes: one for equal files, none while the answer
// is remembered, one again when it is too old.
func TestEachDigestIsAskedOnce(t *testing.T) {
	root := t.TempDir()
	bin := filepath.Join(root, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"one": "#!/bin/sh\nA", "same": "#!/bin/sh\nA", "other": "#!/bin/sh\nB", "broken": "#!/bin/sh\nC", "bash": "#!/bin/sh\nD", "skipped": "#!/bin/sh\nE"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	asked := map[string]int{}
	now := time.Now()
	run := func(again bool) map[string]Tool {
		t.Helper()
		mu.Lock()
		clear(asked)
		mu.Unlock()
		r, err := Run(context.Background(), Options{
			Config: Config{Probe: "auto", MaxAge: time.Hour, Skip: []string{"skipped"}}, Dirs: []string{bin}, Shims: shims.Dirs{Data: filepath.Join(root, "data")}, Now: now, AtOnce: 2, Again: again,
			Query: func(id trust.Identity) shims.Query {
				return shims.Query{Digest: id.Digest, Effective: "x-" + id.Effective}
			},
			Refused: func(trust.Identity) string { return "" },
			Probe: func(_ context.Context, c Candidate, digest string) (Answer, error) {
				mu.Lock()
				asked[digest]++
				mu.Unlock()
				switch c.Name {
				case "broken":
					return Answer{Why: "answered with status 1"}, nil
				case "other":
					return Answer{}, errors.New("no sandbox")
				}
				return Answer{Raw: []byte(answer)}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]Tool{}
		for _, tool := range r.Tools {
			out[tool.Name] = tool
		}
		if out["skipped"].Name != "" || len(r.Skipped) != 1 {
			t.Errorf("scan.skip: %+v", r.Skipped)
		}
		return out
	}
	tools := run(false)
	if len(asked) != 3 || asked[tools["one"].SHA256] != 1 {
		t.Errorf("asked %v", asked)
	}
	if tools["one"].Source != "native" || tools["same"].Source != "native" || tools["broken"].Source != "none" || tools["other"].Probed || tools["bash"].Why != "a shell" {
		t.Errorf("%+v", tools)
	}
	// What could not be asked at all is no negative answer.
	if tools = run(false); len(asked) != 1 || asked[tools["other"].SHA256] != 1 {
		t.Errorf("asked %v", asked)
	}
	if run(true); len(asked) != 2 {
		t.Errorf("asked again %v", asked)
	}
	// The side file says how old an answer is; its clock is the real one.
	path := shims.Dirs{Data: filepath.Join(root, "data")}.NativePath(tools["one"].SHA256)
	if err := shims.Store(path, []byte(answer), nil, shims.Meta{ProbedAt: now.Add(-2 * time.Hour), Expires: now.Add(-time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if tools = run(false); asked[tools["one"].SHA256] != 1 || tools["one"].Source != "native" {
		t.Errorf("an old answer: asked %v, %+v", asked, tools["one"])
	}
}

func TestScanEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := Run(ctx, Options{Dirs: []string{dir}, Shims: shims.Dirs{Data: dir}, Query: func(trust.Identity) shims.Query { return shims.Query{} }, Refused: func(trust.Identity) string { return "" }})
	if err == nil || r.Tools == nil {
		t.Errorf("%+v %v", r, err)
	}
}
