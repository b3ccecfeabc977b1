package crawl

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/archive"
	"github.com/atip-dev/atip-exec/internal/generate"
)

// found is one executable that a source names.
type found struct {
	source  string // local, directory, deb, archive, github, apt
	from    string // the file or package it came from
	inside  string // its name in there
	path    string // where it lies, "" if it could not be had
	sum     string
	version string
	why     string // why it could not be had
	skipped bool   // which is nobody's fault: it would need a download
}

// maxFound bounds what one manifest may name.
const maxFound = 256

// find collects the executables of a manifest. scratch is an empty directory for what
// is taken out of packages; downloads holds what was downloaded, "" if nothing was.
func (m Manifest) find(scratch, downloads string) []found {
	base, err := filepath.Abs(filepath.Dir(m.File))
	if err != nil {
		return []found{{source: "manifest", from: m.File, why: err.Error()}}
	}
	if downloads != "" {
		if downloads, err = filepath.Abs(downloads); err != nil {
			return []found{{source: "manifest", from: m.File, why: err.Error()}}
		}
	}
	x := &finder{m: m, base: base, scratch: scratch, downloads: downloads}
	s := m.Sources
	if s.Local != nil {
		for _, p := range listed(s.Local.Path, s.Local.Paths) {
			x.file("local", x.at(p), s.Local.Version)
		}
	}
	if s.Directory != nil {
		x.directory(s.Directory)
	}
	if s.Deb != nil {
		x.packages("deb", s.Deb, ".deb")
	}
	if s.Archive != nil {
		x.packages("archive", s.Archive, "")
	}
	if s.GitHub != nil {
		x.assets(s.GitHub)
	}
	if s.APT != nil {
		x.apt(s.APT)
	}
	for name, o := range map[string]*otherSource{"dnf": s.DNF, "homebrew": s.Homebrew, "chocolatey": s.Chocolatey, "scoop": s.Scoop, "url": s.URL} {
		if o != nil {
			x.out = append(x.out, found{source: name, from: cmp.Or(o.Formula, o.Package, o.Address), skipped: true, why: "this source is only on the network; name the downloaded file as local, archive or deb"})
		}
	}
	sort.SliceStable(x.out, func(i, j int) bool {
		a, b := x.out[i], x.out[j]
		return a.source < b.source || a.source == b.source && a.from+"\x00"+a.inside < b.from+"\x00"+b.inside
	})
	if len(x.out) > maxFound {
		x.out = append(x.out[:maxFound], found{source: "manifest", from: m.File, why: "it names more than 256 executables; the rest is left out"})
	}
	return x.out
}

type finder struct {
	m                        Manifest
	base, scratch, downloads string
	count                    int
	out                      []found
}

// at is a path of the manifest, relative to its file.
func (x *finder) at(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(x.base, filepath.FromSlash(p))
}

func listed(one string, more []string) []string {
	if one == "" {
		return more
	}
	return append([]string{one}, more...)
}

func (x *finder) failed(source, from, why string) {
	x.out = append(x.out, found{source: source, from: from, why: why})
}

// file takes one executable of this machine.
func (x *finder) file(source, file, version string) {
	info, err := os.Stat(file)
	if err == nil && info.Mode()&0o111 == 0 {
		err = errors.New(file + " is not executable")
	}
	sum := ""
	if err == nil {
		sum, err = digest(file)
	}
	if err != nil {
		x.failed(source, file, err.Error())
		return
	}
	x.out = append(x.out, found{source: source, from: file, path: file, sum: sum, version: cmp.Or(version, x.m.Version)})
}

// directory takes the executables of one directory, without those below it.
func (x *finder) directory(s *folderSource) {
	dir := x.at(s.Path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		x.failed("directory", dir, err.Error())
		return
	}
	n := len(x.out)
	for _, e := range entries {
		if ok, _ := path.Match(cmp.Or(s.Pattern, x.m.Name), e.Name()); !ok {
			continue
		}
		file := filepath.Join(dir, e.Name())
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		x.file("directory", file, s.Version)
	}
	if len(x.out) == n {
		x.failed("directory", dir, "no executable there is called "+cmp.Or(s.Pattern, x.m.Name))
	}
}

// packages takes executables out of packages that lie on this machine.
func (x *finder) packages(source string, s *packageSource, end string) {
	for _, pattern := range listed(s.Path, s.Paths) {
		files, err := filepath.Glob(x.at(pattern))
		if err != nil || len(files) == 0 {
			x.failed(source, x.at(pattern), "there is no such file")
			continue
		}
		for _, file := range files {
			if !archive.Is(file) || end != "" && !strings.HasSuffix(file, end) {
				x.failed(source, file, "its name is not that of an archive which can be read")
				continue
			}
			x.unpack(source, file, s.BinaryPath, s.Version)
		}
	}
}

// assets takes the files of a release out of the downloads.
func (x *finder) assets(s *githubSource) {
	for _, platform := range slices.Sorted(maps.Keys(s.AssetPatterns)) {
		pattern := s.AssetPatterns[platform]
		files := x.downloaded(pattern)
		if len(files) == 0 {
			x.out = append(x.out, found{source: "github", from: s.Repo + " " + pattern, skipped: true, why: "not among the downloads"})
		}
		for _, file := range files {
			if archive.Is(file) {
				x.unpack("github", file, s.BinaryPath, "")
			} else {
				x.file("github", file, versionIn(file))
			}
		}
	}
}

// apt takes the packages of a Debian archive out of the downloads.
func (x *finder) apt(s *aptSource) {
	name := cmp.Or(s.Package, x.m.Name)
	files := []string{}
	if nameable(name) {
		files = x.downloaded(name + "_*.deb")
	}
	if len(files) == 0 {
		x.out = append(x.out, found{source: "apt", from: name, skipped: true, why: "not among the downloads"})
	}
	for _, file := range files {
		x.unpack("apt", file, s.BinaryPath, "")
	}
}

func (x *finder) downloaded(pattern string) []string {
	if x.downloads == "" || strings.ContainsRune(pattern, '/') {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(x.downloads, pattern))
	if err != nil {
		return nil
	}
	return files
}

// unpack takes the executables of one archive.
func (x *finder) unpack(source, file, binaryPath, version string) {
	x.count++
	dir := filepath.Join(x.scratch, x.m.Name, "package"+strconv.Itoa(x.count))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		x.failed(source, file, err.Error())
		return
	}
	got, err := archive.Extract(file, dir, x.m.Name, x.wanted(binaryPath))
	if err != nil {
		x.failed(source, file, err.Error())
		return
	}
	if len(got.Files) == 0 {
		x.failed(source, file, "it holds no executable "+cmp.Or(binaryPath, x.m.Name))
	}
	version = cmp.Or(version, upstream(got.Control["Version"]), x.m.Version)
	if version == "" {
		version = versionIn(file)
	}
	for _, f := range got.Files {
		y := found{source: source, from: file, inside: f.Name, path: f.Path, sum: f.SHA256, version: version}
		if f.Link != "" {
			y.skipped, y.why = true, "it is a link to "+f.Link+"; name that file"
		} else if f.Size == 0 {
			y.path, y.why = "", "it is empty"
		}
		x.out = append(x.out, y)
	}
}

// wanted matches names inside an archive: the pattern of the manifest, else the name of
// the tool in a directory for programs or at the top.
func (x *finder) wanted(pattern string) func(string) bool {
	if pattern != "" {
		return func(name string) bool {
			ok, _ := path.Match(strings.TrimPrefix(pattern, "/"), name)
			return ok
		}
	}
	return func(name string) bool {
		base := strings.TrimSuffix(path.Base(name), ".exe")
		if base != x.m.Name {
			return false
		}
		switch path.Base(path.Dir(name)) {
		case "bin", "sbin", "games", ".":
			return true
		}
		return !strings.Contains(path.Dir(name), "/") // tool-1.2/tool
	}
}

// upstream is the version of a Debian package without epoch and revision.
func upstream(version string) string {
	if _, rest, ok := strings.Cut(version, ":"); ok {
		version = rest
	}
	if i := strings.LastIndexByte(version, '-'); i > 0 {
		version = version[:i]
	}
	return version
}

// versionIn finds the version in the name of a release file.
func versionIn(file string) string {
	name := filepath.Base(file)
	for _, end := range [...]string{".gz", ".xz", ".zst", ".bz2", ".tar", ".tgz", ".txz", ".tbz2", ".zip", ".deb", ".exe"} {
		name = strings.TrimSuffix(name, end)
	}
	return generate.VersionOf(strings.NewReplacer("-", " ", "_", " ").Replace(name))
}

// exists reports whether a path is there at all.
func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}
