package scan

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
)

// Options says what to scan and how.
type Options struct {
	Config    Config
	Dirs      []string // to scan, safe
	Names     []string // only these; nil: all
	Shims     shims.Dirs
	Opener    trust.Opener
	Query     func(trust.Identity) shims.Query // as a run asks for metadata
	Refused   func(trust.Identity) string      // why this file must not be started, "" if it may
	Probe     func(context.Context, Candidate, string) (Answer, error)
	Listed    map[string]bool // names the user named: probed under "listed", too
	Progress  func(done, all int, name string)
	Now       time.Time
	Threads   int // of look-ups
	AtOnce    int // probes
	Again     bool
	ProbeFail func(error) // a probe that could not be made at all
}

// Answer is what a probe brought back.
type Answer struct {
	Raw []byte
	Why string // why there is no document
}

// Tool is one executable with the metadata that a run of it would use.
type Tool struct {
	Name   string    `json:"name"`
	Path   string    `json:"path"`
	SHA256 string    `json:"sha256"`
	Source string    `json:"source"` // native, shim, builtin, override, user, inferred, none
	Rank   atip.Rank `json:"rank"`
	Also   []string  `json:"also,omitempty"`
	Probed bool      `json:"probed,omitempty"` // asked by this scan
	Why    string    `json:"why,omitempty"`    // why it was not asked, or has no answer

	old bool // what it said about itself is older than it may be
}

// Report is what a scan found.
type Report struct {
	Tools   []Tool    `json:"tools"`
	Skipped []Skipped `json:"skipped"`
}

// Run scans. Executables are identified and looked up in parallel; those without
// metadata are then asked with --agent, if o.Probe is set, each digest once.
func Run(ctx context.Context, o Options) (Report, error) {
	candidates, skipped := Candidates(o.Dirs)
	r := Report{Tools: []Tool{}, Skipped: append([]Skipped{}, skipped...)}
	if o.Names != nil {
		candidates, r.Skipped = onlyNamed(candidates, r.Skipped, o.Names)
	}
	s := scanner{o: o, all: len(candidates)}
	results := make([]Tool, len(candidates))
	reasons := make([]string, len(candidates))
	if s.o.Threads <= 0 {
		s.o.Threads = min(4, runtime.NumCPU()+1)
	}
	s.each(ctx, s.o.Threads, len(candidates), func(i int) { results[i], reasons[i] = s.look(candidates[i]) })
	if o.Probe != nil && ctx.Err() == nil {
		s.probe(ctx, candidates, results, reasons)
	}
	for i := range results {
		if reasons[i] != "" {
			r.Skipped = append(r.Skipped, Skipped{candidates[i].Path, reasons[i]})
			continue
		}
		if results[i].Name != "" {
			r.Tools = append(r.Tools, results[i])
		}
	}
	sort.Slice(r.Tools, func(i, j int) bool { return r.Tools[i].Name < r.Tools[j].Name })
	sort.SliceStable(r.Skipped, func(i, j int) bool { return r.Skipped[i].Path < r.Skipped[j].Path })
	return r, ctx.Err()
}

func onlyNamed(list []Candidate, skipped []Skipped, names []string) ([]Candidate, []Skipped) {
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = true
	}
	var out []Candidate
	for _, c := range list {
		if wanted[c.Name] {
			out = append(out, c)
			delete(wanted, c.Name)
		}
	}
	kept := []Skipped{}
	for _, s := range skipped {
		if base := filepath.Base(s.Path); wanted[base] {
			kept = append(kept, s)
			delete(wanted, base)
		}
	}
	for _, n := range names {
		if wanted[n] {
			kept = append(kept, Skipped{n, "not found in the directories that are scanned"})
		}
	}
	return out, kept
}

type scanner struct {
	o    Options
	all  int
	mu   sync.Mutex
	done int
}

// each calls f for 0 to n-1 from several goroutines until the context ends.
func (s *scanner) each(ctx context.Context, threads, n int, f func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range threads {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	wg.Wait()
}

func (s *scanner) progress(name string) {
	if s.o.Progress == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done++
	s.o.Progress(s.done, s.all, name)
}

// look identifies one executable and looks its metadata up. A reason instead means
// that it is left out.
func (s *scanner) look(c Candidate) (Tool, string) {
	defer s.progress(c.Name)
	if slices.Contains(s.o.Config.Skip, c.Name) {
		return Tool{}, "scan.skip in config.json"
	}
	file, err := s.o.Opener.Open(c.Path, nil, "/")
	if err != nil {
		return Tool{}, "cannot be identified: " + err.Error()
	}
	defer file.Close()
	id := file.Identity()
	if id.Digest == "" {
		return Tool{}, "cannot be read"
	}
	t := Tool{Name: c.Name, Path: id.Canonical, SHA256: id.Digest, Also: c.Also, Source: "none"}
	found, err := shims.Lookup(s.o.Query(id), s.o.Shims)
	if err != nil {
		t.Why = err.Error()
		return t, ""
	}
	if found.Document != nil {
		t.Source, t.Rank = found.Provenance.Channel, found.Provenance.Rank
		t.old = t.Source == "native" && found.Provenance.Stale && s.unasked(c, id) == ""
		return t, ""
	}
	if len(found.Warnings) > 0 {
		t.Why = strings.Join(found.Warnings, "; ")
		return t, ""
	}
	t.Why = s.unasked(c, id)
	return t, ""
}

// unasked says why a tool without metadata is not asked for it.
func (s *scanner) unasked(c Candidate, id trust.Identity) string {
	for _, name := range [...]string{c.Name, id.Effective} {
		if why := never(name); why != "" {
			return why
		}
	}
	switch {
	case s.o.Config.Probe == "never":
		return "probe is never in config.json"
	case s.o.Config.Probe == "listed" && !s.o.Listed[c.Name]:
		return "not in scan.allow"
	case id.Manager != "":
		return "starts what " + id.Manager + " chooses"
	}
	if why := s.o.Refused(id); why != "" {
		return why
	}
	if m, ok := shims.Missed(s.o.Shims.NativePath(id.Digest), s.o.Now); ok && !s.o.Again {
		return "asked before: " + m.Why
	}
	return ""
}

// probe asks the tools that nobody knows, each digest once.
func (s *scanner) probe(ctx context.Context, candidates []Candidate, tools []Tool, reasons []string) {
	byDigest := map[string][]int{}
	var digests []string
	for i, t := range tools {
		if t.Name == "" || reasons[i] != "" || t.Why != "" || t.Source != "none" && !t.old {
			continue
		}
		if byDigest[t.SHA256] == nil {
			digests = append(digests, t.SHA256)
		}
		byDigest[t.SHA256] = append(byDigest[t.SHA256], i)
	}
	s.all, s.done = len(digests), 0
	s.each(ctx, max(1, s.o.AtOnce), len(digests), func(n int) {
		at := byDigest[digests[n]]
		t := s.ask(ctx, candidates[at[0]], tools[at[0]])
		for _, i := range at {
			tools[i].Source, tools[i].Rank, tools[i].Probed, tools[i].Why = t.Source, t.Rank, t.Probed, t.Why
		}
		s.progress(t.Name)
	})
}

// ask probes one tool and keeps the answer, good or bad.
func (s *scanner) ask(ctx context.Context, c Candidate, t Tool) Tool {
	answer, err := s.o.Probe(ctx, c, t.SHA256)
	if err != nil {
		// Nothing was asked: there is nothing to remember.
		t.Why = "could not be asked: " + err.Error()
		if s.o.ProbeFail != nil {
			s.o.ProbeFail(err)
		}
		return t
	}
	t.Probed = true
	path := s.o.Shims.NativePath(t.SHA256)
	why := answer.Why
	if why == "" {
		if _, err := shims.Admit(answer.Raw, t.SHA256, false); err != nil {
			why = "answered with something else than metadata: " + cause(err)
		}
	}
	if why != "" {
		t.Why = why
		if err := shims.StoreMiss(path, shims.Absent, why, s.o.Now, s.o.Config.MaxAge); err != nil {
			t.Why += "; " + err.Error()
		}
		return t
	}
	if err := shims.Store(path, answer.Raw, nil, shims.Meta{ProbedAt: s.o.Now.UTC(), Expires: s.o.Now.UTC().Add(s.o.Config.MaxAge)}); err != nil {
		t.Why = err.Error()
		return t
	}
	t.Source, t.Rank = "native", atip.User
	return t
}

// cause is the innermost text of a document's error: the file it names does not exist.
func cause(err error) string {
	var doc *atip.DocError
	if errors.As(err, &doc) {
		return doc.Error()
	}
	var e *shims.Error
	if errors.As(err, &e) {
		return e.Msg
	}
	return err.Error()
}

// Index enters the tools with metadata into registry.json.
func Index(d shims.Dirs, agent string, r Report, at time.Time) error {
	return shims.UpdateIndex(d, agent, func(x *shims.Index) {
		for _, t := range r.Tools {
			if t.Source == "none" {
				// What stood there under this name is gone or has lost its metadata.
				if x.Tools[t.Name].Hash != "" && x.Tools[t.Name].Path == t.Path {
					delete(x.Tools, t.Name)
				}
				continue
			}
			registry := ""
			if t.Source == "shim" {
				_, meta, _ := shims.Cached(d.ShimPath(t.SHA256))
				registry = meta.Registry
			}
			x.Tools[t.Name] = shims.IndexEntry{Path: t.Path, Hash: "sha256:" + t.SHA256, Source: t.Source, ShimRegistry: registry, LastChecked: at.UTC().Truncate(time.Second), Also: t.Also}
		}
	})
}
