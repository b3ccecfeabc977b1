package tools

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/shims/remote"
)

// One look-up waits for registries as long as a command may; a sync has time.
const (
	fetchLimit = 3 * time.Second
	syncLimit  = 5 * time.Minute
)

func registryClient() (*remote.Client, error) {
	dirs, at, err := home()
	if err != nil {
		return nil, err
	}
	if at.Data == "" {
		return nil, fault.New("E1005", "there is no data directory to keep metadata in").WithFix("set HOME", "")
	}
	config, err := remote.ReadConfig(place.Managed, dirs.Config, os.Getenv)
	if err != nil {
		return nil, err
	}
	return remote.New(config, at, os.Getenv), nil
}

func limited(d time.Duration) (context.Context, func()) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, d)
	return ctx, func() { cancel(); stop() }
}

// fetchShimVerb is what a run starts when nothing on this machine knows a file.
func fetchShimVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) != 1 {
		return 0, fault.New("E1004", "fetch-shim needs one digest").WithFix("name the SHA-256 of a file", "")
	}
	hex, ok := remote.Digest(v.Rest[0])
	if !ok {
		return 0, fault.New("E1004", v.Rest[0]+" is not the SHA-256 of an executable").WithFix("write 64 hexadecimal digits", "")
	}
	client, err := registryClient()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	client.Refresh = v.Has("refresh") && v.Get("refresh") != "0"
	ctx, done := limited(fetchLimit)
	defer done()
	r, err := client.Fetch(ctx, hex)
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
	return plain(text) + "\n"
}

// syncVerb renews everything, or asks for the tools named.
func syncVerb(c *cli.Console, v *cli.Values) (int, error) {
	client, err := registryClient()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	ctx, done := limited(syncLimit)
	defer done()
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
	text := itoa(len(client.Config.Registries)) + " registries, " + itoa(counts["shim stored"]) + " documents fetched, " + itoa(counts["shim renewed"]) + " still right, " +
		itoa(counts["dropped "]) + " dropped, " + itoa(counts["policy stored"]) + " policies, " + itoa(counts["failed"]) + " failures\n"
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
		s := subject{Name: word}
		if hex, ok := digestOf(word); ok {
			s.Digest = hex
		} else {
			var err error
			if s, err = subjectOf(word); err != nil {
				return 0, err
			}
		}
		if s.Digest == "" {
			return 0, fault.New("E1005", word+" is not installed: its digest is not known").WithFix("install it, or name its digest", "")
		}
		r, err := client.Fetch(ctx, s.Digest)
		if err != nil {
			return 0, err
		}
		lines = append(lines, line{s.Name, s.Digest, r})
	}
	if c.Documents() {
		return 0, c.Document(map[string]any{"kind": "atip-exec.sync/1", "ok": true, "registries": len(client.Config.Registries), "tools": lines})
	}
	for _, l := range lines {
		if err := c.Text(outcomeLine(l.Tool, l.Result)); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

func listRemote(c *cli.Console) (int, error) {
	client, err := registryClient()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	ctx, done := limited(time.Minute)
	defer done()
	offered, err := client.Catalog(ctx)
	if err != nil {
		return 0, err
	}
	if c.Documents() {
		return 0, c.Document(map[string]any{"kind": "atip-exec.catalog/1", "tools": offered})
	}
	for _, o := range offered {
		if err := c.Text(plain(o.Name+"  "+strings.Join(o.Versions, " ")+"  "+o.Description+"  ("+o.Registry+")") + "\n"); err != nil {
			return 0, err
		}
	}
	return 0, nil
}
