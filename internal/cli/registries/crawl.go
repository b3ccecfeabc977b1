package registries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/crawl"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/scan"
)

const crawlLimit = 30 * time.Minute

// CrawlVerb fills a registry from tool manifests. It opens no connection; executables
// run only in the sandbox of a probe, and scripts of packages never.
func CrawlVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) == 0 || v.Get("into") == "" {
		return 0, fault.New(errcode.Arguments, "crawl needs manifests and a folder to fill").WithFix("name the folder of the registry and the manifests", "atip crawl --into www tools/")
	}
	files, err := crawl.Find(v.Rest)
	if err != nil {
		return 0, fault.New(errcode.NoInputFile, err.Error())
	}
	manifests, broken, err := readManifests(files, v.All("tool"))
	if err != nil {
		return 0, err
	}
	dirs, _, err := answer.Home()
	if err != nil {
		return 0, err
	}
	line := answer.NewProgress(c)
	o := crawl.Options{Dir: v.Get("into"), Downloads: v.Get("from"), Check: v.Has("check"), Replace: v.Has("replace"), Now: time.Now(), Progress: line.Show}
	if !v.Has("no-probe") && !v.Has("check") {
		prober := scan.Prober{Self: caller.Here().Self, State: dirs.State, Cache: dirs.Cache, Home: dirs.Home}
		o.Ask = prober.Text
		o.Native = func(ctx context.Context, path, digest string) ([]byte, string, error) {
			answer, err := prober.Ask(ctx, scan.Candidate{Path: path}, digest)
			return answer.Raw, answer.Why, err
		}
	}
	ctx, done := cli.Limited(crawlLimit)
	defer done()
	r, err := crawl.Run(ctx, manifests, o)
	line.Clear()
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return 0, fault.New(errcode.Cancelled, "the crawl was ended; nothing of it was written")
	case err != nil:
		if f := fault.From(err); f.Code != errcode.Internal {
			return 0, f
		}
		return 0, fault.New(errcode.NoInputFile, err.Error())
	}
	return printCrawl(c, v, r, broken)
}

// readManifests reads all manifests, or those of the tools named. A broken one is told
// and does not keep the others from being carried out.
func readManifests(files, tools []string) (list []crawl.Manifest, broken []*fault.Fault, err error) {
	seen := map[string]string{}
	for _, file := range files {
		m, err := crawl.Read(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fault.New(errcode.NoInputFile, err.Error()).With("file", file)
		}
		if err != nil {
			broken = append(broken, fault.From(err))
			continue
		}
		if other, ok := seen[m.Name]; ok {
			broken = append(broken, fault.New(errcode.MetadataStructure, file+": "+other+" is a manifest of "+m.Name+", too").With("file", file))
			continue
		}
		seen[m.Name] = file
		if len(tools) == 0 || slices.Contains(tools, m.Name) {
			list = append(list, m)
		}
	}
	for _, name := range tools {
		if seen[name] == "" {
			return nil, nil, fault.New(errcode.NoInputFile, "no manifest is called "+name).WithFix("name one of the manifests' tools", "")
		}
	}
	return list, broken, nil
}

func printCrawl(c *cli.Console, v *cli.Values, r crawl.Report, broken []*fault.Fault) (int, error) {
	status := 0
	counts := map[crawl.Outcome]int{}
	for _, item := range r.Items {
		counts[item.Outcome]++
	}
	if len(broken) > 0 || counts[crawl.Failed] > 0 {
		status = 65
	}
	if broken == nil {
		broken = []*fault.Fault{}
	}
	if c.Documents() {
		return status, c.Document(struct {
			Kind   string         `json:"kind"`
			OK     bool           `json:"ok"`
			Broken []*fault.Fault `json:"broken"`
			crawl.Report
		}{"atip-exec.crawl/1", status == 0, broken, r})
	}
	for _, f := range broken {
		c.Warn(f.Message)
	}
	var b strings.Builder
	for _, item := range r.Items {
		b.WriteString(crawlLines(item))
	}
	fmt.Fprintf(&b, "%d added, %d changed, %d kept, %d new, %d native, %d skipped, %d failed\n", counts[crawl.Added], counts[crawl.Changed], counts[crawl.Kept], counts[crawl.New], counts[crawl.Native], counts[crawl.Skipped], counts[crawl.Failed])
	fmt.Fprintf(&b, "coverage: %d tools tracked, %d documents in %s, %d tools with gaps\n", r.Coverage.Tracked, r.Coverage.Total, answer.Plain(v.Get("into")), len(r.Coverage.Missing))
	for _, gap := range r.Coverage.Missing {
		missing := strings.Join(gap.Platforms, ", ")
		missing = cmp.Or(missing, "no document at all")
		fmt.Fprintf(&b, "missing %s: %s\n", answer.Plain(gap.Name), answer.Plain(missing))
	}
	return status, c.Text(b.String())
}

func crawlLines(i crawl.Item) string {
	head := "[" + answer.Plain(i.Tool) + "] "
	from := i.From
	if i.Inside != "" {
		from += " " + i.Inside
	}
	text := head + i.Source + " " + answer.Plain(from) + "\n"
	if i.SHA256 != "" {
		text += head + "  sha256:" + i.SHA256 + " " + answer.Plain(i.Platform+" "+i.Version) + "\n"
	}
	text += head + "  " + string(i.Outcome)
	if i.Document != "" {
		text += ": " + i.Document
	}
	if i.Why != "" {
		text += ": " + answer.Plain(i.Why)
	}
	return text + "\n"
}
