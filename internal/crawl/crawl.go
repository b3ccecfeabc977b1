package crawl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/generate"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/shims/remote"
)

// Outcome is what became of one executable.
type Outcome string

// Outcomes.
const (
	Added   Outcome = "added"   // a document was written
	Changed Outcome = "changed" // the one that was there was replaced, as asked for
	Kept    Outcome = "kept"    // the folder has one: a person may have worked on it
	New     Outcome = "new"     // the folder has none; only looking was asked for
	Native  Outcome = "native"  // the tool describes itself
	Skipped Outcome = "skipped" // it cannot be had here
	Failed  Outcome = "failed"
)

// Item is one executable of one manifest.
type Item struct {
	Tool     string  `json:"tool"`
	Source   string  `json:"source"`
	From     string  `json:"from"`
	Inside   string  `json:"inside,omitempty"` // name in a package
	SHA256   string  `json:"sha256,omitempty"`
	Platform string  `json:"platform,omitempty"`
	Version  string  `json:"version,omitempty"`
	Method   string  `json:"method,omitempty"` // template, help
	Document string  `json:"document,omitempty"`
	Outcome  Outcome `json:"outcome"`
	Why      string  `json:"why,omitempty"`
}

// Options says what to crawl into which folder.
type Options struct {
	Dir       string // of the registry
	Downloads string // what was downloaded before, "" for nothing
	Check     bool   // only say what is new
	Replace   bool   // documents that are there are written again
	Now       time.Time
	// Ask runs an executable with --help and the like in the sandbox of a probe; nil
	// starts nothing.
	Ask func(ctx context.Context, path, digest string, words ...string) (text, why string, err error)
	// Native asks an executable for its own document.
	Native   func(ctx context.Context, path, digest string) (raw []byte, why string, err error)
	Progress func(done, all int, what string)
}

// Report is what a crawl did.
type Report struct {
	Items    []Item           `json:"items"`
	Coverage Coverage         `json:"coverage"`
	Folder   remote.Published `json:"folder"`
}

// Run carries out manifests one after the other. What fails is said in the report and
// stops nothing; nothing of a crawl that is cancelled is written.
func Run(ctx context.Context, manifests []Manifest, o Options) (Report, error) {
	r := Report{Items: []Item{}}
	scratch, err := os.MkdirTemp("", "atip-crawl-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(scratch)
	var uploads []remote.Upload
	planned := map[string]bool{}
	native := map[string]bool{}
	for i, m := range manifests {
		if o.Progress != nil {
			o.Progress(i, len(manifests), m.Name)
		}
		for _, f := range m.find(scratch, o.Downloads) {
			if err := ctx.Err(); err != nil {
				return r, err
			}
			item, upload := o.one(ctx, m, f, planned)
			if upload != nil {
				uploads = append(uploads, *upload)
				planned[item.SHA256] = true
			}
			if item.Outcome == Native {
				native[m.Name] = true
			}
			r.Items = append(r.Items, item)
		}
		if err := os.RemoveAll(filepath.Join(scratch, m.Name)); err != nil {
			return r, err
		}
	}
	if o.Progress != nil {
		o.Progress(len(manifests), len(manifests), "")
	}
	if !o.Check {
		if r.Folder, err = remote.Publish(o.Dir, uploads, remote.PublishOptions{Now: o.Now}); err != nil {
			return r, err
		}
	}
	r.Coverage, err = coverage(o.Dir, manifests, native)
	return r, err
}

// one decides about one executable.
func (o Options) one(ctx context.Context, m Manifest, f found, planned map[string]bool) (Item, *remote.Upload) {
	item := Item{Tool: m.Name, Source: f.source, From: f.from, Inside: f.inside, SHA256: f.sum, Version: f.version, Why: f.why}
	fail := func(why string) (Item, *remote.Upload) {
		item.Outcome, item.Why, item.Document = Failed, why, ""
		return item, nil
	}
	if f.path == "" {
		item.Outcome = Failed
		if f.skipped {
			item.Outcome = Skipped
		}
		return item, nil
	}
	item.Platform = platformOf(f.path)
	if item.Platform == "" {
		return fail("it is no program that is known here")
	}
	item.Document = "shims/sha256/" + f.sum + ".json"
	target := filepath.Join(o.Dir, filepath.FromSlash(item.Document))
	there := exists(target)
	switch {
	case planned[f.sum]:
		item.Outcome, item.Why = Kept, "the same file was found before"
		return item, nil
	case there && (!o.Replace || o.Check):
		item.Outcome = Kept
		return item, nil
	case o.Check:
		item.Outcome = New
		return item, nil
	}
	runs := o.Ask != nil && (item.Platform == runtime.GOOS+"-"+runtime.GOARCH || item.Platform == "any")
	if item.Version == "" && runs {
		if text, _, err := o.Ask(ctx, f.path, f.sum, "--version"); err == nil {
			item.Version = generate.VersionOf(text)
		}
	}
	item.Version = cmp.Or(item.Version, "unknown")
	template, err := m.template()
	if err != nil {
		return fail("template: " + err.Error())
	}
	var doc map[string]any
	switch {
	case template != nil:
		item.Method = "template"
		doc, err = m.written(f, item)
	case !runs:
		item.Outcome, item.Why, item.Document = Skipped, "there is no template, and it cannot be asked on this machine", ""
		return item, nil
	default:
		if o.native(ctx, f) {
			item.Outcome, item.Document = Native, ""
			return item, nil
		}
		item.Method = "help"
		doc, err = o.inferred(ctx, m, f, item)
	}
	if err != nil {
		return fail(err.Error())
	}
	raw, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return fail(err.Error())
	}
	up := remote.Upload{File: m.File, Raw: append(raw, '\n')}
	if err := remote.Acceptable(o.Dir, up); err != nil {
		return fail(strings.TrimPrefix(err.Error(), m.File+": "))
	}
	item.Outcome = Added
	if there {
		item.Outcome = Changed
	}
	return item, &up
}

// native reports whether the tool has metadata of its own.
func (o Options) native(ctx context.Context, f found) bool {
	if o.Native == nil {
		return false
	}
	raw, why, err := o.Native(ctx, f.path, f.sum)
	if err != nil || why != "" {
		return false
	}
	_, err = shims.Admit(raw, f.sum, false)
	return err == nil
}

// written is the document that a person wrote for the tool, for this file.
func (m Manifest) written(f found, item Item) (map[string]any, error) {
	doc := map[string]any{}
	if err := json.Unmarshal([]byte(m.Template), &doc); err != nil {
		return nil, err
	}
	doc["atip"] = map[string]any{"version": "0.6"}
	doc["binary"] = map[string]any{"hash": "sha256:" + f.sum, "name": m.Name, "version": item.Version, "platform": item.Platform}
	doc["trust"] = map[string]any{"source": "community", "verified": false}
	if _, ok := doc["description"]; !ok && m.Description != "" {
		doc["description"] = m.Description
	}
	if _, ok := doc["homepage"]; !ok && m.Homepage != "" {
		doc["homepage"] = m.Homepage
	}
	return doc, nil
}

// inferred is what --help of the tool says. It may find danger and claims nothing
// harmless.
func (o Options) inferred(ctx context.Context, m Manifest, f found, item Item) (map[string]any, error) {
	ask := func(ctx context.Context, words ...string) (string, string, error) {
		return o.Ask(ctx, f.path, f.sum, words...)
	}
	root, err := generate.Walk(ctx, ask, func([]string) {})
	if err != nil {
		return nil, errors.New("it could not be asked: " + err.Error())
	}
	if len(root.Help.Commands) == 0 && len(root.Help.Options) == 0 {
		return nil, errors.New("its --help names neither a command nor an option; write a template")
	}
	doc := generate.Document(generate.Subject{Name: m.Name, Version: item.Version, Digest: f.sum, Platform: item.Platform}, root, o.Now)
	if m.Description != "" {
		doc["description"] = m.Description
	}
	if m.Homepage != "" {
		doc["homepage"] = m.Homepage
	}
	return doc, nil
}

// Coverage says how much of what is tracked a registry describes (section 4.10.5).
type Coverage struct {
	Tracked   int            `json:"tracked_tools"`
	Total     int            `json:"total_shims"`
	Platforms map[string]int `json:"platforms"`
	BySource  map[string]int `json:"by_source"`
	Missing   []Gap          `json:"missing"`
}

// Gap is a tool without documents for some of its platforms, or for all.
type Gap struct {
	Name      string   `json:"name"`
	Platforms []string `json:"platforms"`
}

// coverage counts what lies in the folder.
func coverage(dir string, manifests []Manifest, native map[string]bool) (Coverage, error) {
	c := Coverage{Tracked: len(manifests), Platforms: map[string]int{}, BySource: map[string]int{}, Missing: []Gap{}}
	if len(native) > 0 {
		c.BySource["native"] = len(native)
	}
	list, err := remote.Documents(dir)
	if err != nil {
		return c, err
	}
	have := map[string]map[string]bool{}
	for _, stored := range list {
		raw, err := os.ReadFile(stored.Path)
		if err != nil {
			return c, err
		}
		doc, err := shims.Admit(raw, stored.Digest, true)
		if err != nil {
			return c, err
		}
		c.Total++
		platform, source := cmp.Or(doc.Platform(), "any"), atip.User.String()
		if rank, ok := doc.DeclaredSource(); ok {
			source = rank.String()
		}
		c.Platforms[platform]++
		c.BySource[source]++
		if have[doc.Name()] == nil {
			have[doc.Name()] = map[string]bool{}
		}
		have[doc.Name()][platform] = true
	}
	for _, m := range manifests {
		gap := Gap{Name: m.Name, Platforms: []string{}}
		for _, p := range m.platforms() {
			if !have[m.Name][p] && !have[m.Name]["any"] {
				gap.Platforms = append(gap.Platforms, p)
			}
		}
		if len(gap.Platforms) > 0 || len(have[m.Name]) == 0 && !native[m.Name] {
			c.Missing = append(c.Missing, gap)
		}
	}
	sort.Slice(c.Missing, func(i, j int) bool { return c.Missing[i].Name < c.Missing[j].Name })
	return c, nil
}
