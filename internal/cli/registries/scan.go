package registries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/authority"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/scan"
	"github.com/atip-dev/atip-exec/internal/toollock"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/settle"
)

// scanLimit ends a scan that takes too long; what was found until then is kept.
const scanLimit = 5 * time.Minute

// ScanVerb is `atip scan`.
func ScanVerb(c *cli.Console, v *cli.Values) (int, error) {
	dirs, at, err := answer.Home()
	if err != nil {
		return 0, err
	}
	if at.Data == "" {
		return 0, fault.New(errcode.NoInputFile, "there is no data directory to keep metadata in").WithFix("set HOME", "")
	}
	o, skipped, err := scanOptions(v, dirs, at)
	if err != nil {
		return 0, err
	}
	ctx, done := cli.Limited(scanLimit)
	defer done()
	line := answer.NewProgress(c)
	o.Progress = line.Show
	report, err := scan.Run(ctx, o)
	line.Clear()
	askDistro(c, dirs, report)
	if failed := scan.Index(at, cli.Version, report, time.Now()); failed != nil {
		return 0, failed
	}
	if errors.Is(err, context.DeadlineExceeded) {
		c.Warn("the scan was ended after " + scanLimit.String() + "; what it found is kept")
	} else if err != nil {
		return 0, fault.New(errcode.Cancelled, "the scan was cancelled; what it found is kept")
	}
	return 0, printScan(c, v, o.Dirs, skipped, report)
}

// askDistro stores what the package database says of the system's files, for later runs.
// Nothing is said if it cannot be asked: then runs know no more than before.
func askDistro(c *cli.Console, dirs place.Dirs, r scan.Report) {
	policies, err := plan.Policies(caller.Here())
	if err != nil || policies.TrustPolicy().DistroTrust == "off" {
		return
	}
	session := authority.Session(caller.Here(), dirs, policies.TrustPolicy())
	var queries []settle.Query
	for _, t := range r.Tools {
		q := settle.Query{Kind: "tool", Name: t.Name, SHA256: t.SHA256, Path: t.Path, Distro: true}
		if t.SHA256 != "" && strings.HasPrefix(t.Path, "/usr/") && !session.HasDistro(q) {
			queries = append(queries, q)
		}
	}
	answers, err := session.Settle(queries...)
	if err != nil {
		return
	}
	for i, a := range answers {
		session.KeepDistro(queries[i], a)
		if a.Distro == trust.DistroMismatch {
			c.Warn(answer.Plain(queries[i].Path + " is not what its package installed; it is refused (distro_db_mismatch)"))
		}
	}
}

func scanOptions(v *cli.Values, dirs place.Dirs, at shims.Dirs) (o scan.Options, skipped []scan.Skipped, err error) {
	config, err := scan.ReadConfig(dirs.Config)
	if err != nil {
		return o, nil, err
	}
	policies, err := plan.Policies(caller.Here())
	if err != nil {
		return o, nil, err
	}
	lock, err := toollock.Read(filepath.Join(dirs.Config, toollock.UserFile))
	if err != nil {
		return o, nil, err
	}
	stated := policies.TrustPolicy()
	judged := toollock.Locks{User: lock}.Trust(trust.Policy{RequireTool: stated.RequireTool, Pins: stated.Pins, Revoked: stated.Revoked})
	o = scan.Options{Config: config, Shims: at, Now: time.Now(), AtOnce: 4, Again: v.Has("again"), Listed: map[string]bool{},
		Opener:  trust.Opener{CacheDir: filepath.Join(dirs.State, "digest"), Home: dirs.Home, TmpDirs: []string{os.TempDir()}, Getenv: os.Getenv},
		Query:   func(id trust.Identity) shims.Query { return answer.QueryOf(id, trust.Judge(id, judged)) },
		Refused: func(id trust.Identity) string { return refusal(trust.Judge(id, judged)) },
	}
	path := filepath.SplitList(caller.Here().Getenv("PATH"))
	var named []string
	for _, word := range v.Rest {
		if info, err := os.Stat(word); strings.Contains(word, "/") || err == nil && info.IsDir() {
			if err != nil {
				return o, nil, fault.New(errcode.NoInputFile, err.Error()).With("directory", word)
			}
			if !info.IsDir() {
				return o, nil, fault.New(errcode.NoInputFile, word+" is not a directory").WithFix("name a directory, or a tool as it is found in PATH", "atip scan gh")
			}
			named = append(named, word)
			continue
		}
		o.Names = append(o.Names, word)
	}
	switch {
	case len(named) > 0:
		o.Dirs, skipped = scan.Named(named)
	case len(o.Names) > 0 || len(config.Allow) > 0:
		if len(o.Names) == 0 {
			o.Names = config.Allow
		}
		o.Dirs, _ = scan.Named(absolute(path))
	default:
		o.Dirs, skipped = scan.Places(path, dirs.Home, config.Paths)
	}
	for _, name := range append(append([]string{}, o.Names...), config.Allow...) {
		o.Listed[name] = true
	}
	if !v.Has("no-probe") {
		o.Probe = scan.Prober{Self: caller.Here().Self, State: dirs.State, Cache: dirs.Cache, Home: dirs.Home}.Ask
	}
	return o, skipped, nil
}

func absolute(path []string) []string {
	var out []string
	for _, dir := range path {
		if filepath.IsAbs(dir) {
			out = append(out, dir)
		}
	}
	return out
}

func refusal(v trust.Verdict) string {
	if v.Action == trust.Deny {
		return "not trusted: " + v.Reason
	}
	return ""
}

func printScan(c *cli.Console, v *cli.Values, dirs []string, places []scan.Skipped, r scan.Report) error {
	counts := map[string]int{}
	for _, t := range r.Tools {
		counts[t.Source]++
	}
	if dirs == nil {
		dirs = []string{}
	}
	if c.Documents() {
		return c.Document(map[string]any{"kind": "atip-exec.scan/1", "directories": dirs, "tools": r.Tools, "skipped": append(append([]scan.Skipped{}, places...), r.Skipped...), "counts": counts})
	}
	var lines []string
	unknown := 0
	for _, t := range r.Tools {
		if t.Source == "none" {
			unknown++
			if c.Verbose > 0 {
				lines = append(lines, fmt.Sprintf("%-20s unknown  %s  %s\n", answer.Plain(t.Name), answer.Plain(t.Path), answer.Plain(t.Why)))
			}
			continue
		}
		lines = append(lines, fmt.Sprintf("%-20s %s, rank %s  %s\n", answer.Plain(t.Name), t.Source, t.Rank, answer.Plain(t.Path)))
	}
	lines, left := answer.Most(v, lines)
	var b strings.Builder
	b.WriteString(strings.Join(lines, "") + answer.LeftOutLine(left))
	told := places
	if c.Verbose > 0 {
		told = append(told, r.Skipped...)
	}
	for _, s := range told {
		fmt.Fprintf(&b, "skipped %s: %s\n", answer.Plain(s.Path), answer.Plain(s.Reason))
	}
	var parts []string
	for source, n := range counts {
		if source != "none" {
			parts = append(parts, strconv.Itoa(n)+" "+source)
		}
	}
	sort.Strings(parts)
	fmt.Fprintf(&b, "%d executables in %d directories: %s; %d without metadata, %d skipped\n", len(r.Tools), len(dirs), orNone(strings.Join(parts, ", ")), unknown, len(places)+len(r.Skipped))
	return c.Text(b.String())
}

func orNone(s string) string {
	return cmp.Or(s, "no metadata")
}
