package prove

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/newfile"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust/request"
	"github.com/atip-dev/atip-exec/trust/settle"
	"github.com/atip-dev/atip-exec/trust/signer"
	"github.com/atip-dev/atip-exec/trust/sigstore"
)

// trustVerb reads and renews roots; signers are atip's own matter.
func trustVerb(c *cli.Console, v *cli.Values) (int, error) {
	switch {
	case len(v.Rest) == 1 && v.Rest[0] == "status":
		return statusVerb(c)
	case len(v.Rest) == 1 && v.Rest[0] == "update":
		return updateVerb(c, v)
	}
	return 0, fault.New(errcode.Arguments, "trust needs one of update, status, list, add-signer, forget").WithFix("see `atip trust --help`", "atip trust status")
}

func trustDirs() (settle.Dirs, place.Dirs, error) {
	dirs, err := caller.Here().Dirs()
	if err != nil {
		return settle.Dirs{}, dirs, fault.New(errcode.NoInputFile, err.Error())
	}
	return settle.Dirs{Managed: filepath.Join(place.Managed, "trust"), User: filepath.Join(dirs.Config, "trust")}, dirs, nil
}

// rootStatus is one root file for people.
type rootStatus struct {
	settle.File
	AgeDays     int                  `json:"ageDays"`
	Stale       bool                 `json:"stale"` // older than 90 days
	Used        bool                 `json:"used"`  // no other one of the name comes first
	Problem     string               `json:"problem,omitempty"`
	Skipped     []string             `json:"skipped,omitempty"`
	Authorities []sigstore.Authority `json:"authorities"`
}

const staleAfter = 90 * 24 * time.Hour

func statusVerb(c *cli.Console) (int, error) {
	at, _, err := trustDirs()
	if err != nil {
		return 0, err
	}
	config, err := settle.Load(at, settle.Stated{})
	if err != nil {
		return 0, err
	}
	files := map[string]settle.File{}
	for _, f := range config.Files {
		if f.Kind == "root" {
			files[f.Layer+"/"+f.Name] = f
		}
	}
	list, now, status := []rootStatus{}, time.Now(), 0
	for _, r := range config.Roots {
		layer := "user"
		if r.Managed {
			layer = "managed"
		}
		s := rootStatus{File: files[layer+"/"+r.Name], Used: !r.Shadowed, Authorities: []sigstore.Authority{}}
		if r.Data == nil {
			raw, meta := sigstore.Embedded()
			sum := sha256.Sum256(raw)
			s.File = settle.File{Kind: "root", Name: r.Name, Layer: "embedded", SHA256: hex.EncodeToString(sum[:]), Profile: meta.Profile, Fetched: meta.Fetched}
		}
		parsed, err := sigstore.ParseRoot(r)
		if err != nil {
			s.Problem, status = "trust_root_invalid: "+err.Error(), 78
		} else {
			s.Authorities, s.Skipped, s.Profile = parsed.Authorities(), parsed.Skipped, parsed.Profile
		}
		if !s.Fetched.IsZero() {
			s.AgeDays, s.Stale = int(now.Sub(s.Fetched).Hours()/24), now.Sub(s.Fetched) > staleAfter
		}
		list = append(list, s)
	}
	if c.Documents() {
		return status, c.Document(map[string]any{"kind": "atip-exec.trust/1", "ok": status == 0, "roots": list})
	}
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "%s  %s, %s", s.Name, s.Layer, s.Profile)
		if !s.Used {
			b.WriteString(", for the administrator's signers only")
		}
		if !s.Fetched.IsZero() {
			fmt.Fprintf(&b, ", %d days old", s.AgeDays)
		}
		if s.Stale {
			b.WriteString(" (stale: " + signer.UpdateRoot(s.Name) + ")")
		}
		fmt.Fprintf(&b, "\n  sha256 %s  %s\n", s.SHA256, s.Path)
		if s.Problem != "" {
			fmt.Fprintf(&b, "  %s\n", s.Problem)
		}
		for _, a := range s.Authorities {
			end := "still valid"
			if !a.End.IsZero() {
				end = "until " + a.End.Format(time.DateOnly)
			}
			fmt.Fprintf(&b, "  %-5s %s  from %s, %s\n", a.Kind, a.URI, a.Start.Format(time.DateOnly), end)
		}
		for _, u := range s.Skipped {
			fmt.Fprintf(&b, "  skipped %s: its kind of key is not read\n", u)
		}
	}
	return status, c.Text(b.String())
}

// updateVerb fetches a root by TUF. The old one is kept beside the new one, and stays if
// anything goes wrong.
func updateVerb(c *cli.Console, v *cli.Values) (int, error) {
	if os.Getenv("ATIP_EXEC_SANDBOX") != "" {
		return 0, fault.New(errcode.Denied, "trust update: this process runs inside atip-exec").WithFix("run it yourself, in a terminal", "")
	}
	at, dirs, err := trustDirs()
	if err != nil {
		return 0, err
	}
	name, profile := v.Get("name"), sigstore.PublicGood
	name = cmp.Or(name, signer.DefaultRoot)
	if !signer.IsName(name) {
		return 0, fault.New(errcode.Arguments, name+" is no name of a root").WithFix("use letters, digits and . _ -", "")
	}
	if name != signer.DefaultRoot && !v.Has("mirror") {
		return 0, fault.New(errcode.Arguments, "the root "+name+" needs --mirror: the public repository has the root "+signer.DefaultRoot+" only").WithFix("name the repository of that root", signer.UpdateRoot(name))
	}
	u := sigstore.Update{Mirror: v.Get("mirror"), Cache: filepath.Join(dirs.State, "tuf")}
	if file := v.Get("tuf-root"); file != "" {
		if u.TUFRoot, err = input(file, request.MaxRoot); err != nil {
			return 0, err
		}
	}
	if u.Mirror != "" {
		profile = sigstore.Private
		if u.TUFRoot == nil {
			return 0, fault.New(errcode.Arguments, "--mirror needs --tuf-root: the first root.json of that repository").WithFix("get it from the maintainer of the repository", "")
		}
	}
	dir := filepath.Join(at.User, "roots")
	if v.Has("system") {
		dir = filepath.Join(at.Managed, "roots")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fault.New(errcode.OutputWrite, dir+": "+plainError(err))
	}
	if os.Getenv("ATIP_OFFLINE") != "" && os.Getenv("ATIP_OFFLINE") != "0" {
		return 0, fault.New(errcode.Offline, "offline: no root can be fetched; the old one stays")
	}
	path := filepath.Join(dir, name+".json")
	var raw []byte
	err = shims.Locked(path, func() error {
		ctx, done := cli.Limited(time.Minute)
		defer done()
		if raw, err = sigstore.Fetch(ctx, u); err != nil {
			return fault.New(errcode.RegistryUnavailable, "the root was not fetched, the old one stays: "+err.Error()).WithFix("run it again when the network is there", signer.UpdateRoot(v.Get("name")))
		}
		return replaceRoot(path, name, profile, raw, v.Has("force"))
	})
	if err != nil {
		return 0, err
	}
	sum := sha256.Sum256(raw)
	return 0, c.Answer(map[string]any{"kind": "atip-exec.trust/1", "ok": true, "file": path, "sha256": hex.EncodeToString(sum[:])}, path+"\n")
}

// replaceRoot puts a root in place with its side file, if it drops nothing that is still
// valid.
func replaceRoot(path, name, profile string, raw []byte, force bool) error {
	fresh, err := sigstore.ParseRoot(request.Root{Name: name, Data: raw, Profile: profile})
	if err != nil {
		return fault.New(errcode.RegistryAnswer, "the new root is not used: "+err.Error())
	}
	old, err := os.ReadFile(path)
	if err == nil {
		have, err := sigstore.ParseRoot(request.Root{Name: name, Data: old, Profile: profile})
		if err == nil && !force {
			if lost := sigstore.Lost(have, fresh, time.Now()); len(lost) > 0 {
				return fault.New(errcode.RegistryAnswer, fmt.Sprintf("the new root drops %d authorities that are still valid, such as %s %s", len(lost), lost[0].Kind, lost[0].URI)).
					WithFix("find out why, then repeat it with --force", "atip trust update --force")
			}
		}
		if err := written(path+".prev", newfile.Replace(path+".prev", old, 0o644)); err != nil {
			return err
		}
	}
	sum := sha256.Sum256(raw)
	meta, err := json.Marshal(sigstore.Meta{Fetched: time.Now().UTC().Truncate(time.Second), SHA256: hex.EncodeToString(sum[:]), Profile: profile})
	if err != nil {
		return fault.New(errcode.Internal, err.Error())
	}
	side := strings.TrimSuffix(path, ".json") + ".meta.json"
	// Between the two a reader sees a side file of another root, which is an error, not a
	// root of unknown age.
	if err := written(side, newfile.Replace(side, append(meta, '\n'), 0o644)); err != nil {
		return err
	}
	return written(path, newfile.Replace(path, raw, 0o644))
}
