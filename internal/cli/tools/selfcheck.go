package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/regular"
)

// sumsName is the list of checksums that scripts/release puts into each archive and package.
const sumsName = "atip-exec.sums"

// ownPrograms are in every list.
var ownPrograms = [...]string{"atip", "atip-exec", "atip-verify"}

// installed is one file of a release, compared.
type installed struct {
	File     string `json:"file"`
	Status   string `json:"status"` // same, differs, missing, unlisted, elsewhere
	Released string `json:"released,omitempty"`
	Here     string `json:"here,omitempty"`
}

// sum is one line of a list.
type sum struct{ digest, name string }

func selfCheckVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) > 0 {
		return 0, fault.New(errcode.Arguments, "self-check takes no arguments").WithFix("name a list with --sums", "atip self-check --sums atip-exec.sums")
	}
	dir := filepath.Dir(caller.Here().Self)
	list, named := v.Get("sums"), v.Has("sums")
	if !named {
		list = filepath.Join(dir, sumsName)
		if _, err := os.Lstat(list); errors.Is(err, fs.ErrNotExist) {
			list = filepath.Join(filepath.Dir(dir), "share", "atip-exec", sumsName)
		}
	}
	raw, err := regular.Read(list, 1<<20)
	if err != nil {
		if !named && errors.Is(err, fs.ErrNotExist) {
			return 0, fault.New(errcode.NoInputFile, "no list of checksums came with this installation: it was built from source, or only the programs were copied").
				With("version", cli.Version).WithFix("take the .sums file of this version and system from the release, and name it", "atip self-check --sums FILE.sums")
		}
		return 0, fault.New(errcode.NoInputFile, err.Error()).With("file", list)
	}
	sums, err := readSums(string(raw))
	if err != nil {
		return 0, fault.New(errcode.Archive, list+": "+err.Error()).WithFix("take the .sums file of the release again", "")
	}
	files := compareSums(sums, filepath.Dir(list), dir, named)
	level, reason := signatureOf(list)
	ok := level != "COMPROMISED" && !slices.ContainsFunc(files, func(f installed) bool {
		return f.Status == "differs" || f.Status == "missing" || f.Status == "unlisted"
	})
	status := 0
	if !ok {
		status = 65
	}
	if c.Documents() {
		return status, c.Document(map[string]any{"kind": "atip-exec.self-check/1", "ok": ok, "version": cli.Version, "list": list,
			"signature": map[string]string{"level": level, "reason": reason}, "files": files})
	}
	return status, c.Text(selfCheckText(files, list, level, reason))
}

func selfCheckText(files []installed, list, level, reason string) string {
	said := map[string]string{"same": "✔ %s  as released\n", "differs": "✘ %s  differs from the release\n", "missing": "✘ %s  is missing\n",
		"unlisted": "✘ %s  is not in the list\n", "elsewhere": "- %s  not compared: only the programs are looked for\n"}
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, said[f.Status], answer.Visible(f.File))
		if f.Status == "differs" {
			b.WriteString("    released: " + f.Released + "\n    here:     " + f.Here + "\n")
		}
	}
	b.WriteString("list: " + answer.Visible(list) + "\n")
	if level == "VERIFIED" {
		return b.String() + "signature: verified; the list is the one that its signer released\n"
	}
	return b.String() + "signature: " + level + " (" + reason + "): the list shows damage and mixed versions. An attacker who changed the files could change the list, too: compare on another machine, with a list that you fetched there\n"
}

// readSums reads what sha256sum writes: a digest, two characters and a name.
func readSums(text string) ([]sum, error) {
	var out []sum
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		digest, name, ok := strings.Cut(line, " ")
		if raw, err := hex.DecodeString(digest); !ok || err != nil || len(raw) != sha256.Size || len(name) < 2 || name[0] != ' ' && name[0] != '*' || filepath.IsAbs(name[1:]) {
			return nil, fmt.Errorf("line %d is no SHA-256 sum and name", i+1)
		}
		out = append(out, sum{strings.ToLower(digest), name[1:]})
	}
	return out, nil
}

// compareSums holds the files of a list against it. Names count from the directory of the list; of a
// list that the user names only those of the programs are known, beside this one.
func compareSums(sums []sum, base, programs string, named bool) []installed {
	out := []installed{}
	listed := map[string]bool{}
	for _, s := range sums {
		file, name := filepath.Join(base, filepath.FromSlash(s.name)), filepath.Base(s.name)
		program := strings.TrimSuffix(name, ".exe")
		place := filepath.Dir(file) == programs
		if named { // of an archive, or of a package
			place = !strings.Contains(s.name, "/") || path.Base(path.Dir(s.name)) == "bin"
		}
		if place && slices.Contains(ownPrograms[:], program) {
			listed[program] = true
			file = filepath.Join(programs, name) // what runs, wherever the list lies
		} else if named {
			out = append(out, installed{File: s.name, Status: "elsewhere", Released: s.digest})
			continue
		}
		f := installed{File: file, Status: "same", Released: s.digest}
		here, err := digestOf(file)
		switch f.Here = here; {
		case err != nil:
			f.Status = "missing"
		case here != s.digest:
			f.Status = "differs"
		}
		out = append(out, f)
	}
	for _, name := range ownPrograms {
		if !listed[name] {
			out = append(out, installed{File: filepath.Join(programs, name), Status: "unlisted"})
		}
	}
	return out
}

func digestOf(file string) (string, error) {
	f, err := regular.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// signatureOf asks the verifier whether the list was signed by one of the user's signers.
func signatureOf(list string) (level, reason string) {
	raw, err := askVerifier(context.Background(), "verify", "-o", "json", "--", absolutePath(list))
	var verdict struct{ Level, Reason string }
	if json.Unmarshal(raw, &verdict) != nil || verdict.Level == "" {
		reason = "atip-verify gave no usable answer"
		if err != nil {
			reason += ": " + firstLine(err.Error())
		}
		return "UNVERIFIED", reason
	}
	return verdict.Level, verdict.Reason
}

func absolutePath(file string) string {
	if abs, err := filepath.Abs(file); err == nil {
		return abs
	}
	return file
}
