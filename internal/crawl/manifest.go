// Package crawl fills a registry: it finds the executables that tool manifests name, on
// this machine and in packages that were downloaded before, and writes a document for
// each (ATIP 0.6 section 4.10). It opens no connection.
package crawl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Manifest says what a tool is called, where its executables are and, in Template, what
// a person wrote about it.
type Manifest struct {
	File string `yaml:"-"`

	Name        string  `yaml:"name"`
	Homepage    string  `yaml:"homepage"`
	Description string  `yaml:"description"`
	Version     string  `yaml:"version"` // where a source does not tell
	Sources     sources `yaml:"sources"`
	Template    string  `yaml:"template"` // JSON: the document without atip, binary and trust
}

// sources are the places of executables. The last six need a network in the standard;
// here they name what must have been downloaded before.
type sources struct {
	Local     *localSource   `yaml:"local"`
	Directory *folderSource  `yaml:"directory"`
	Deb       *packageSource `yaml:"deb"`
	Archive   *packageSource `yaml:"archive"`

	GitHub     *githubSource `yaml:"github"`
	APT        *aptSource    `yaml:"apt"`
	DNF        *otherSource  `yaml:"dnf"`
	Homebrew   *otherSource  `yaml:"homebrew"`
	Chocolatey *otherSource  `yaml:"chocolatey"`
	Scoop      *otherSource  `yaml:"scoop"`
	URL        *otherSource  `yaml:"url"`
}

type localSource struct {
	Path    string   `yaml:"path"`
	Paths   []string `yaml:"paths"`
	Version string   `yaml:"version"`
}

type folderSource struct {
	Path    string `yaml:"path"`
	Pattern string `yaml:"pattern"` // of file names; the name of the tool if empty
	Version string `yaml:"version"`
}

type packageSource struct {
	Path       string   `yaml:"path"` // a pattern
	Paths      []string `yaml:"paths"`
	BinaryPath string   `yaml:"binary_path"` // a pattern of names inside
	Version    string   `yaml:"version"`
	Platforms  []string `yaml:"platforms"`
}

type githubSource struct {
	Repo          string            `yaml:"repo"`
	AssetPatterns map[string]string `yaml:"asset_patterns"`
	BinaryPath    string            `yaml:"binary_path"`
}

type aptSource struct {
	Package    string   `yaml:"package"`
	Platforms  []string `yaml:"platforms"`
	BinaryPath string   `yaml:"binary_path"`
}

type otherSource struct {
	Formula   string   `yaml:"formula"`
	Package   string   `yaml:"package"`
	Address   string   `yaml:"address"`
	Platforms []string `yaml:"platforms"`
}

const (
	maxManifest  = 256 << 10
	maxManifests = 10_000
)

// Find lists the manifests among files and in directories.
func Find(words []string) ([]string, error) {
	var out []string
	for _, word := range words {
		info, err := os.Stat(word)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			out = append(out, word)
			continue
		}
		entries, err := os.ReadDir(word)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			switch path.Ext(e.Name()) {
			case ".yaml", ".yml", ".json":
				if e.Type().IsRegular() {
					out = append(out, filepath.Join(word, e.Name()))
				}
			}
		}
	}
	sort.Strings(out)
	if len(out) > maxManifests {
		return nil, fmt.Errorf("%d manifests are more than %d", len(out), maxManifests)
	}
	return out, nil
}

// Read reads one manifest strictly: YAML, or JSON, which is a part of it.
func Read(file string) (Manifest, error) {
	m := Manifest{File: file}
	bad := func(format string, args ...any) (Manifest, error) {
		return m, errcode.InFile(errcode.MetadataStructure, file, fmt.Sprintf(format, args...))
	}
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	if err != nil {
		return bad("%s", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxManifest {
		return bad("is not a regular file of at most 256 KiB")
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return bad("%s", err)
	}
	if !utf8.Valid(raw) {
		return bad("is not UTF-8")
	}
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(&m); err != nil {
		return bad("is no manifest: %s", strings.ReplaceAll(err.Error(), "\n", ";"))
	}
	if err := d.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		return bad("holds more than one document")
	}
	if !nameable(m.Name) {
		return bad("name: %q is not the name of a program", m.Name)
	}
	if m.Sources == (sources{}) {
		return bad("sources: none is named")
	}
	for _, pattern := range m.patterns() {
		if _, err := path.Match(pattern, ""); err != nil {
			return bad("%q is not a pattern of file names", pattern)
		}
	}
	if _, err := m.template(); err != nil {
		return bad("template: %s", err)
	}
	return m, nil
}

// nameable reports whether a name can be that of an executable and of nothing else.
func nameable(name string) bool {
	if name == "" || len(name) > 100 || strings.Trim(name, ".") == "" || name[0] == '-' {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._+-", c) >= 0) {
			return false
		}
	}
	return true
}

func (m Manifest) patterns() []string {
	s, out := m.Sources, []string{}
	if s.Directory != nil {
		out = append(out, s.Directory.Pattern)
	}
	for _, p := range []*packageSource{s.Deb, s.Archive} {
		if p != nil {
			out = append(append(out, p.BinaryPath, p.Path), p.Paths...)
		}
	}
	if s.GitHub != nil {
		out = append(out, s.GitHub.BinaryPath)
		for _, p := range s.GitHub.AssetPatterns {
			out = append(out, p)
		}
	}
	if s.APT != nil {
		out = append(out, s.APT.BinaryPath)
	}
	return out
}

// template reads what a person wrote about the tool, strictly. Which file it is for and
// how far it is believed is not theirs to say.
func (m Manifest) template() (*atip.Node, error) {
	if strings.TrimSpace(m.Template) == "" {
		return nil, nil
	}
	n, err := atip.ParseTree([]byte(m.Template), atip.ParseOptions{MaxBytes: maxManifest})
	if err != nil {
		return nil, err
	}
	if n.Kind != atip.KindObject {
		return nil, errors.New("it is not an object")
	}
	for _, key := range []string{"atip", "binary", "trust", "_generation"} {
		if n.Get(key) != nil {
			return nil, fmt.Errorf("%q is written by the crawler", key)
		}
	}
	return n, nil
}

// platforms lists those for which the sources promise an executable.
func (m Manifest) platforms() []string {
	seen := map[string]bool{}
	add := func(list []string) {
		for _, p := range list {
			seen[p] = true
		}
	}
	s := m.Sources
	if s.GitHub != nil {
		for p := range s.GitHub.AssetPatterns {
			seen[p] = true
		}
	}
	if s.APT != nil {
		add(s.APT.Platforms)
	}
	for _, p := range []*packageSource{s.Deb, s.Archive} {
		if p != nil {
			add(p.Platforms)
		}
	}
	for _, o := range []*otherSource{s.DNF, s.Homebrew, s.Chocolatey, s.Scoop, s.URL} {
		if o != nil {
			add(o.Platforms)
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
