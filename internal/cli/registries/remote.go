package registries

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
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
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/shims/remote"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/settle"
)

// One look-up waits for registries as long as a command may; a sync has time.
const (
	fetchLimit = 3 * time.Second
	syncLimit  = 5 * time.Minute
)

func registryClient() (*remote.Client, error) {
	dirs, at, err := answer.Home()
	if err != nil {
		return nil, err
	}
	if at.Data == "" {
		return nil, fault.New(errcode.NoInputFile, "there is no data directory to keep metadata in").WithFix("set HOME", "")
	}
	config, err := remote.ReadConfig(place.Managed, dirs.Config, os.Getenv)
	if err != nil {
		return nil, err
	}
	client := remote.New(config, at, os.Getenv)
	client.State = dirs.State
	client.CheckPolicy = func(file string, raw []byte) error {
		doc, err := policy.Parse(policy.Source{File: file, Raw: raw, Layer: policy.LayerOrg})
		if err == nil {
			_, err = policy.Compile([]*policy.Document{doc})
		}
		return err
	}
	m := caller.Here()
	policies, err := plan.Policies(m)
	if err != nil {
		return nil, err
	}
	stated := policies.TrustPolicy()
	session := authority.Session(m, dirs, stated)
	client.Verify = func(q settle.Query, required bool) (trust.Verdict, string, error) {
		settled, err := session.Settle(q)
		if err != nil {
			return trust.Verdict{}, "", err
		}
		t := authority.TrustPolicyOf(stated)
		t.RequireMetadata = t.RequireMetadata || required
		if q.Kind == "tool" {
			return trust.Decide(settled[0].Facts(trust.Facts{Subject: trust.Tool}), t), session.Why(q.SHA256), nil
		}
		return trust.JudgeMetadata(settled[0], t), session.Why(q.SHA256), nil
	}
	return client, nil
}

// FetchShimVerb is what a run starts when nothing on this machine knows a file.
func FetchShimVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) != 1 {
		return 0, fault.New(errcode.Arguments, "fetch-shim needs one digest").WithFix("name the SHA-256 of a file", "")
	}
	hex, ok := remote.Digest(v.Rest[0])
	if !ok {
		return 0, fault.New(errcode.Arguments, v.Rest[0]+" is not the SHA-256 of an executable").WithFix("write 64 hexadecimal digits", "")
	}
	client, err := registryClient()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	client.Refresh = v.Has("refresh") && v.Get("refresh") != "0"
	ctx, done := cli.Limited(fetchLimit)
	defer done()
	var r remote.Result
	if id := v.Get("approved-by"); id != "" {
		r, err = client.Approve(ctx, id, hex)
	} else {
		r, err = client.Fetch(ctx, hex)
	}
	var kept *shims.Error
	if errors.As(err, &kept) && kept.Code == errcode.MetadataUnsafe {
		// The answer was good, our own directory is not: nothing was refused.
		return 0, fault.New(errcode.RegistryUnavailable, "the answer cannot be kept: "+kept.Error()).With("file", kept.File).WithFix("make the data directory writable", "")
	}
	if err != nil {
		return 0, err
	}
	if c.Documents() {
		return 0, c.Document(struct {
			Kind string `json:"kind"`
			remote.Result
		}{"atip-exec.fetch-shim/1", r})
	}
	return 0, c.Text(outcomeLine(hex, r))
}

func outcomeLine(what string, r remote.Result) string {
	text := what + ": " + string(r.Outcome)
	if r.Registry != "" {
		text += ", from " + r.Registry
	}
	if r.Note != "" {
		text += ": " + r.Note
	}
	return answer.Plain(text) + "\n"
}

// SyncVerb renews everything, or asks for the tools named.
func SyncVerb(c *cli.Console, v *cli.Values) (int, error) {
	client, err := registryClient()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	ctx, done := cli.Limited(syncLimit)
	defer done()
	if v.Has("evidence") {
		return syncEvidence(ctx, c, client, v.Rest)
	}
	if len(v.Rest) > 0 {
		return syncTools(ctx, c, client, v.Rest)
	}
	steps, status := []remote.Synced{}, 0
	err = client.Sync(ctx, func(s remote.Synced) {
		steps = append(steps, s)
		if s.Err != nil {
			status = max(status, fault.From(s.Err).Exit)
		}
		if c.ErrTTY && !c.Documents() {
			c.Note(strings.TrimSpace(s.What + " " + s.Registry + " " + s.Digest))
		}
	})
	if err != nil {
		return 0, err
	}
	if c.Documents() {
		return status, c.Document(map[string]any{"kind": "atip-exec.sync/1", "ok": status == 0, "registries": len(client.Config.Registries), "steps": steps})
	}
	counts := map[string]int{}
	for _, s := range steps {
		if s.Error != "" {
			counts["failed"]++
			c.Warn(s.Error)
			continue
		}
		counts[s.What+" "+string(s.Outcome)]++
	}
	text := strconv.Itoa(len(client.Config.Registries)) + " registries, " + strconv.Itoa(counts["shim stored"]) + " documents fetched, " + strconv.Itoa(counts["shim renewed"]) + " still right, " +
		strconv.Itoa(counts["dropped "]) + " dropped, " + strconv.Itoa(counts["policy stored"]) + " policies, " + approvalCount(counts) + strconv.Itoa(counts["failed"]) + " failures\n"
	return status, c.Text(text)
}

func syncTools(ctx context.Context, c *cli.Console, client *remote.Client, words []string) (int, error) {
	client.Refresh = true
	type line struct {
		Tool   string `json:"tool"`
		SHA256 string `json:"sha256"`
		remote.Result
	}
	lines := []line{}
	for _, word := range words {
		s := answer.Subject{Name: word}
		if hex, ok := answer.DigestOf(word); ok {
			s.Digest = hex
		} else {
			var err error
			if s, err = answer.SubjectOf(word); err != nil {
				return 0, err
			}
		}
		if s.Digest != "" {
			r, err := client.Fetch(ctx, s.Digest)
			if err != nil {
				return 0, err
			}
			lines = append(lines, line{s.Name, s.Digest, r})
			if err := approveChain(ctx, client, s); err != nil {
				return 0, err
			}
			continue
		}
		// Not installed here: what the catalogs offer under this name is fetched ahead.
		ahead, err := client.Prefetch(ctx, word)
		if err != nil {
			return 0, err
		}
		if len(ahead) == 0 {
			return 0, fault.New(errcode.NoInputFile, word+" is not installed, and no catalog offers it for this platform").WithFix("install it, or name its digest", "atip list --remote")
		}
		for _, hex := range slices.Sorted(maps.Keys(ahead)) {
			lines = append(lines, line{word, hex, ahead[hex]})
		}
	}
	text := ""
	for _, l := range lines {
		text += outcomeLine(l.Tool, l.Result)
	}
	return 0, c.Answer(map[string]any{"kind": "atip-exec.sync/1", "ok": true, "registries": len(client.Config.Registries), "tools": lines}, text)
}

// syncEvidence fetches what documents name as evidence, of everything at hand or of the tools named.
func syncEvidence(ctx context.Context, c *cli.Console, client *remote.Client, words []string) (int, error) {
	claims, err := client.Claims()
	if err != nil {
		return 0, err
	}
	if len(words) > 0 {
		all := claims
		claims = nil
		for _, word := range words {
			s, err := answer.SubjectOf(word)
			if err != nil {
				return 0, err
			}
			for _, claim := range append(all, remote.ClaimsOf(s.Document(), s.Digest, "")...) {
				if claim.Digest == s.Digest && !slices.ContainsFunc(claims, func(have remote.Claimed) bool {
					return have.Digest == claim.Digest && have.Ending == claim.Ending
				}) {
					claim.Path = s.Path
					claims = append(claims, claim)
				}
			}
		}
	}
	type line struct {
		Tool    string         `json:"tool"`
		SHA256  string         `json:"sha256"`
		URL     string         `json:"url"`
		File    string         `json:"file"`
		Outcome remote.Outcome `json:"outcome,omitempty"`
		Error   string         `json:"error,omitempty"`
	}
	lines, status := []line{}, 0
	for _, claim := range claims {
		if c.ErrTTY && !c.Documents() {
			c.Note(answer.Plain(claim.URL))
		}
		l := line{Tool: claim.Document.Name(), SHA256: claim.Digest, URL: claim.URL, File: claim.Digest + claim.Ending}
		if l.Outcome, err = client.Evidence(ctx, claim); err != nil {
			l.Error, status = err.Error(), max(status, fault.From(err).Exit)
		}
		lines = append(lines, l)
	}
	if c.Documents() {
		return status, c.Document(map[string]any{"kind": "atip-exec.sync/1", "ok": status == 0, "registries": len(client.Config.Registries), "evidence": lines})
	}
	counts := map[remote.Outcome]int{}
	for _, l := range lines {
		if l.Error != "" {
			c.Warn(answer.Plain(l.Error))
			continue
		}
		counts[l.Outcome]++
		if err := c.Text(answer.Plain(l.Tool+": "+string(l.Outcome)+", "+l.File+" from "+l.URL) + "\n"); err != nil {
			return 0, err
		}
	}
	failed := len(lines) - counts[remote.Stored] - counts[remote.Fresh] - counts[remote.Missing]
	return status, c.Text(strconv.Itoa(len(lines)) + " named, " + strconv.Itoa(counts[remote.Stored]) + " stored, " + strconv.Itoa(counts[remote.Fresh]) + " at hand, " +
		strconv.Itoa(counts[remote.Missing]) + " not there, " + strconv.Itoa(failed) + " failures\n")
}

// approveChain asks again whether what a command starts is approved.
func approveChain(ctx context.Context, client *remote.Client, s answer.Subject) error {
	chain := s.Chain
	if chain == nil {
		chain = []string{s.Digest}
	}
	for _, id := range client.Approvers() {
		for _, hex := range chain {
			if _, err := client.Approve(ctx, id, hex); err != nil {
				return err
			}
		}
	}
	return nil
}

func approvalCount(counts map[string]int) string {
	n := counts["approval stored"] + counts["approval renewed"] + counts["approval missing"]
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n) + " approvals (" + strconv.Itoa(counts["approval missing"]) + " withdrawn), "
}

func listRemote(c *cli.Console, v *cli.Values) (int, error) {
	client, err := registryClient()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	ctx, done := cli.Limited(time.Minute)
	defer done()
	offered, err := client.Catalog(ctx)
	if err != nil {
		return 0, err
	}
	return 0, answer.List(c, v, map[string]any{"kind": "atip-exec.catalog/1", "tools": offered}, offered, func(o remote.Offered) string {
		return answer.Plain(o.Name+"  "+strings.Join(o.Versions, " ")+"  "+o.Description+"  ("+o.Registry+")") + "\n"
	}, "")
}
