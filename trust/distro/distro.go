// Package distro asks the package database of the distribution whether a file is unchanged
// since the package manager wrote it. That is no signature: it holds as far as root is
// honest, and it says nothing about how recent the package is. trust.md section 6.
package distro

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/trust"
)

// Answer is what the database says about one file.
type Answer struct {
	Distro  trust.Distro
	Package string
	Why     string // of a mismatch, or of no answer
}

// Root is where the file system begins: "/" but for tests.
type Root struct {
	Dir string
	// Owned reports whether nobody but root can write a path of the database.
	Owned func(path string) bool

	lists map[string][]byte // of dpkg, kept for the next question
}

// Paths are the databases that may be read, for whoever confines the reader.
func Paths() []string {
	return []string{"/var/lib/dpkg", "/lib/apk/db", "/usr/lib/apk/db", "/var/lib/pacman/local"}
}

func (r Root) join(path string) string { return filepath.Join(r.Dir, path) }

// Keeping returns the root with room to keep what several questions read.
func (r Root) Keeping() Root {
	r.lists = map[string][]byte{}
	return r
}

// Ask looks for the file, by its canonical path and the SHA-256 that is judged.
func (r Root) Ask(path, digest string) Answer {
	if !filepath.IsAbs(path) {
		return Answer{Why: "the path is not absolute"}
	}
	for _, ask := range [...]func(Root, string, string) (Answer, bool){Root.dpkg, Root.apk, Root.pacman} {
		if a, is := ask(r, path, digest); is {
			return a
		}
	}
	return Answer{Why: "no package database was found"}
}

// maxDatabase bounds what is read of one database file.
const maxDatabase = 64 << 20

// database reads a file of a database that only root can write.
func (r Root) database(path string) ([]byte, error) {
	full := r.join(path)
	if !r.Owned(full) || !r.Owned(filepath.Dir(full)) {
		return nil, fmt.Errorf("%s can be written by others than root", path)
	}
	return regular.Read(full, maxDatabase)
}

// aliases are the names under which a package may have shipped the file: before the merge
// of /bin into /usr/bin, and after it.
func aliases(path string) []string {
	out := []string{path}
	for _, dir := range [...]string{"/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/", "/libx32/"} {
		if strings.HasPrefix(path, "/usr"+dir) {
			out = append(out, strings.TrimPrefix(path, "/usr"))
		} else if strings.HasPrefix(path, dir) {
			out = append(out, "/usr"+path)
		}
	}
	return out
}

// compare hashes the file once with the database's algorithm and with ours: what is not the
// file that is judged proves nothing.
func (r Root) compare(path, digest, owner string, h hash.Hash, want string) Answer {
	f, err := os.Open(r.join(path))
	if err != nil {
		return Answer{Package: owner, Why: err.Error()}
	}
	defer f.Close()
	ours := sha256.New()
	if _, err := io.Copy(io.MultiWriter(h, ours), f); err != nil {
		return Answer{Package: owner, Why: err.Error()}
	}
	switch {
	case hex.EncodeToString(ours.Sum(nil)) != digest:
		return Answer{Package: owner, Why: "the file changed while it was read"}
	case hex.EncodeToString(h.Sum(nil)) != strings.ToLower(want):
		return Answer{Distro: trust.DistroMismatch, Package: owner, Why: path + " is not what the package " + owner + " installed"}
	}
	return Answer{Distro: trust.DistroMatch, Package: owner}
}

const dpkgInfo = "/var/lib/dpkg/info"

// dpkg reads lists and sums of Debian's packages.
func (r Root) dpkg(path, digest string) (Answer, bool) {
	entries, err := os.ReadDir(r.join(dpkgInfo))
	if err != nil {
		return Answer{}, false
	}
	names := aliases(path)
	names, only, not := r.diverted(names)
	for _, e := range entries {
		owner, ok := strings.CutSuffix(e.Name(), ".list")
		plain, _, _ := strings.Cut(owner, ":")
		if !ok || only != "" && plain != only || not != "" && plain == not {
			continue
		}
		list, ok := r.lists[owner]
		if !ok {
			if list, err = r.database(dpkgInfo + "/" + e.Name()); err != nil {
				return Answer{Why: err.Error()}, true
			}
			if r.lists != nil {
				r.lists[owner] = list
			}
		}
		for _, name := range names {
			if !line(list, name) {
				continue
			}
			if conf, err := r.database(dpkgInfo + "/" + owner + ".conffiles"); err == nil && line(conf, name) {
				return Answer{Package: owner, Why: "it is a configuration file, which is meant to be changed"}, true
			}
			sums, err := r.database(dpkgInfo + "/" + owner + ".md5sums")
			if err != nil {
				return Answer{Package: owner, Why: "the package has no sums: " + err.Error()}, true
			}
			want := DpkgSum(sums, name)
			if want == "" {
				return Answer{Package: owner, Why: "the package has no sum of the file"}, true
			}
			return r.compare(path, digest, owner, md5.New(), want), true
		}
	}
	return Answer{Why: "no package owns it"}, true
}

// line reports a whole line in a list.
func line(list []byte, text string) bool {
	if !bytes.Contains(list, []byte(text)) {
		return false
	}
	for l := range bytes.Lines(list) {
		if string(bytes.TrimSuffix(l, []byte("\n"))) == text {
			return true
		}
	}
	return false
}

// DpkgSum finds the MD5 of an absolute path in a .md5sums file, "" if it is not there or
// stands there twice with different sums.
func DpkgSum(sums []byte, path string) string {
	found := ""
	for l := range bytes.Lines(sums) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(string(l), "\n"), "  ")
		if !ok || "/"+strings.TrimPrefix(name, "./") != path {
			continue
		}
		if raw, err := hex.DecodeString(sum); err != nil || len(raw) != md5.Size || found != "" && found != sum {
			return ""
		}
		found = sum
	}
	return found
}

// diverted applies the diversions: a file that was moved aside stands in its package's list
// under the old name, and the old name belongs to the package that diverted it.
func (r Root) diverted(names []string) (list []string, only, not string) {
	raw, err := r.database("/var/lib/dpkg/diversions")
	if err != nil {
		return names, "", ""
	}
	s := bufio.NewScanner(bytes.NewReader(raw))
	var group []string
	for s.Scan() {
		if group = append(group, s.Text()); len(group) < 3 {
			continue
		}
		from, to, by := group[0], group[1], group[2]
		group = nil
		for _, name := range names {
			switch name {
			case to:
				return aliases(from), "", by
			case from:
				if by == ":" {
					by = "\x00" // of the administrator: no package owns what lies there
				}
				return names, by, ""
			}
		}
	}
	return names, "", ""
}

// apk reads Alpine's database: packages as paragraphs, with directories (F), files (R) and
// their sums (Z).
func (r Root) apk(path, digest string) (Answer, bool) {
	var raw []byte
	var err error
	for _, at := range [...]string{"/lib/apk/db/installed", "/usr/lib/apk/db/installed"} {
		if _, missing := os.Stat(r.join(at)); missing != nil {
			continue
		}
		if raw, err = r.database(at); err != nil {
			return Answer{Why: err.Error()}, true
		}
	}
	if raw == nil {
		return Answer{}, false
	}
	for _, name := range aliases(path) {
		owner, sum := ApkSum(raw, name)
		if owner == "" {
			continue
		}
		if strings.HasPrefix(name, "/etc/") {
			return Answer{Package: owner, Why: "it is a configuration file, which is meant to be changed"}, true
		}
		switch len(sum) {
		case 2 * sha1.Size:
			return r.compare(path, digest, owner, sha1.New(), sum), true
		case 2 * sha256.Size:
			return r.compare(path, digest, owner, sha256.New(), sum), true
		}
		return Answer{Package: owner, Why: "the package has no sum of the file"}, true
	}
	return Answer{Why: "no package owns it"}, true
}
