// Package answer holds what the verbs of atip share: how long lists and chosen fields are
// printed, how text of others is shown, and what tool, file or Runfile a verb was asked about.
package answer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/authority"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/toollock"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/settle"
)

// Subject is what a verb was asked about: a tool as it is installed here, a digest, or
// a document in a file.
type Subject struct {
	Name       string
	Path       string // of the executable, "" if none
	Digest     string
	Chain      []string // digests of all files that would run: a script, its interpreter
	Found      shims.Found
	Provenance atip.Provenance
	Evidence   *trust.Evidence // what was proven of the executable; nil if nothing was
}

// Document is the metadata that was found, nil if there is none.
func (s Subject) Document() *atip.Document { return s.Found.Document }

// Home finds our directories and those of metadata.
func Home() (place.Dirs, shims.Dirs, error) {
	dirs, err := caller.Here().Dirs()
	if err != nil {
		return dirs, shims.Dirs{}, err
	}
	return dirs, ShimDirs(dirs), nil
}

// ShimDirs are the directories of metadata beside ours.
func ShimDirs(d place.Dirs) shims.Dirs { return shims.DirsOf(d.Config, d.Data, d.State, os.Getenv) }

// SubjectOf finds the metadata of a tool by name, path or digest. A word with a slash
// or the ending .json that is no executable names a document.
func SubjectOf(word string) (Subject, error) {
	if hex, ok := DigestOf(word); ok {
		return subjectByDigest(hex)
	}
	if isDocument(word) {
		return SubjectFromFile(word)
	}
	dirs, at, err := Home()
	if err != nil {
		return Subject{}, err
	}
	s := Subject{Name: filepath.Base(word)}
	q := shims.Query{Effective: s.Name, Invoked: s.Name}
	policies, err := plan.Policies(caller.Here())
	if err != nil {
		return s, err
	}
	lock, err := toollock.Read(filepath.Join(dirs.Config, toollock.UserFile))
	if err != nil {
		return s, err
	}
	cwd, _ := os.Getwd()
	opener := trust.Opener{CacheDir: filepath.Join(dirs.State, "digest"), Home: dirs.Home, Getenv: os.Getenv, TmpDirs: []string{os.TempDir()}}
	stated := policies.TrustPolicy()
	if stated.SystemPathsSet {
		opener.SystemPaths = stated.SystemPaths
	}
	file, err := opener.Open(word, filepath.SplitList(caller.Here().Getenv("PATH")), cwd)
	var missing *trust.NotFoundError
	switch {
	case errors.As(err, &missing):
		// A run judges a command that is not installed by the curated document.
		q.Believed = true
	case err != nil:
		return s, err
	default:
		defer file.Close()
		id := file.Identity()
		s.Path, s.Digest = id.Canonical, id.Digest
		for _, part := range id.Chain {
			if part.Role != trust.RoleArgument && part.Digest != "" {
				s.Chain = append(s.Chain, part.Digest)
			}
		}
		verdict, err := judgedTool(dirs, at, stated, lock, id)
		if err != nil {
			return s, err
		}
		q = QueryOf(id, verdict)
		if verdict.Level == trust.Verified {
			s.Evidence = verdict.Evidence
		}
	}
	s.Found, err = shims.Lookup(q, at)
	s.Provenance = s.Found.Provenance
	return s, err
}

// judgedTool decides about an executable as a run does before it looks at metadata.
func judgedTool(dirs place.Dirs, at shims.Dirs, stated policy.TrustPolicy, lock toollock.Lock, id trust.Identity) (trust.Verdict, error) {
	queries := make([]settle.Query, len(id.Chain))
	for i := range id.Chain {
		queries[i] = settle.PartQuery(at, id, i)
	}
	settled, err := authority.Session(caller.Here(), dirs, stated).Settle(queries...)
	if err != nil {
		return trust.Verdict{}, err
	}
	t := trust.Policy{Pins: stated.Pins, Revoked: stated.Revoked, MinimumSLSALevel: stated.MinimumSLSALevel}
	return trust.Judge(id, toollock.Locks{User: lock}.Trust(t), settled...), nil
}

// QueryOf asks for the metadata of an identified file as a run does.
func QueryOf(id trust.Identity, v trust.Verdict) shims.Query {
	q := shims.Query{Digest: id.Digest, Effective: id.Effective, Invoked: id.Invoked, Verified: v.Level == trust.Verified, NameOnly: id.Manager != ""}
	switch v.Reason {
	case "pinned", "known_digest", "distro_db_match", "system_path":
		q.Believed = v.Action == trust.Allow
	}
	q.Believed = q.Believed || q.Verified
	if q.NameOnly {
		q.Effective = id.Invoked
	}
	if id.SystemPath && id.Place != "" {
		q.Borrow = filepath.Base(id.Place)
	}
	if target, ok := id.Target(); ok {
		q.Believed = target.SystemPath
	}
	return q
}

func subjectByDigest(hex string) (Subject, error) {
	_, at, err := Home()
	if err != nil {
		return Subject{}, err
	}
	s := Subject{Name: hex, Digest: hex}
	s.Found, err = shims.Lookup(shims.Query{Digest: hex}, at)
	s.Provenance = s.Found.Provenance
	if err == nil && s.Found.Document != nil && s.Found.Document.Name() != "" {
		s.Name = s.Found.Document.Name()
	}
	return s, err
}

// SubjectFromFile reads a document as its author would like it to be believed: what
// it declares about itself is not held against its place.
func SubjectFromFile(file string) (Subject, error) {
	d, err := ReadDocument(file)
	if err != nil {
		return Subject{}, err
	}
	rank := atip.Vendor
	if declared, ok := d.DeclaredSource(); ok {
		rank = declared
	}
	p := atip.Provenance{Channel: "file", Rank: rank, Binding: "none", Source: "file:" + file}
	return Subject{Name: d.Name(), Found: shims.Found{Document: d, Provenance: p}, Provenance: p}, nil
}

// ReadDocument reads and validates a metadata document.
func ReadDocument(file string) (*atip.Document, error) {
	raw, err := ReadFile(file, MaxDocument)
	if err != nil {
		return nil, err
	}
	d, err := atip.Parse(raw, atip.ParseOptions{Comments: true, MaxBytes: MaxDocument})
	if err != nil {
		return nil, inFile(file, err)
	}
	return d, nil
}

// inFile gives a document's error the file it belongs to.
func inFile(file string, err error) error {
	f := fault.From(err)
	g := fault.New(f.Code, file+": "+f.Message).With("file", file)
	for k, v := range f.Details {
		g.With(k, v)
	}
	return g
}

func isDocument(word string) bool {
	if !strings.HasSuffix(word, ".json") {
		return false
	}
	info, err := os.Stat(word)
	return err != nil || info.Mode()&0o111 == 0 || info.IsDir()
}

// DigestOf accepts 64 hex digits, with or without "sha256:".
func DigestOf(word string) (string, bool) {
	hex := strings.ToLower(strings.TrimPrefix(word, "sha256:"))
	if len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "" {
		return "", false
	}
	return hex, true
}

// DocumentedSubject is SubjectOf; no metadata is an error.
func DocumentedSubject(word string) (Subject, error) {
	s, err := SubjectOf(word)
	if err != nil || s.Found.Document != nil {
		return s, err
	}
	msg := "no metadata for " + s.Name
	if len(s.Found.Warnings) > 0 {
		msg += ": " + strings.Join(s.Found.Warnings, "; ")
	}
	return s, fault.New(errcode.NoInputFile, msg).With("tool", s.Name).WithFix("`atip list` shows the tools that have metadata", "atip list")
}
