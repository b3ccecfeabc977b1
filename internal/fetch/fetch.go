// Package fetch prepares the call that fetches what a project declares: which files of the project
// it sees, which hosts it reaches. It runs no code of the project, and sees none.
package fetch

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// Bounds of what is looked at and copied.
const (
	maxInput   = 32 << 20
	maxEntries = 50_000
	maxFiles   = 20_000
)

// Work is one such call.
type Work struct {
	Argv    []string    `json:"argv"`
	Dir     string      `json:"dir"` // of the project, whose files are copied
	Hosts   []string    `json:"hosts"`
	Env     [][2]string `json:"-"` // of the call
	Offline [][2]string `json:"-"` // of the command afterwards

	files []file
}

type file struct {
	path  string // below Dir
	empty bool   // only its name counts
}

// Find prepares the call for a command of tool that was typed in dir. listed reports a host that
// the user's policy names. why says what keeps the command from being split.
func Find(f *atip.Fetch, tool, dir string, getenv func(string) string, listed func(host string) bool) (w *Work, why string) {
	w = &Work{Argv: append([]string{tool}, f.Words...), Dir: dir, Hosts: f.Hosts, Env: slices.Clone(f.Env), Offline: f.OfflineEnv}
	if why := w.mirror(f, getenv, listed); why != "" {
		return nil, why
	}
	if err := w.find(f); err != nil {
		return nil, err.Error()
	}
	if !slices.ContainsFunc(w.files, func(x file) bool { return !x.empty && slices.Contains(f.Needs, x.path) }) {
		return nil, "there is no " + strings.Join(f.Needs, " or ")
	}
	for _, x := range w.files {
		if x.empty {
			continue
		}
		raw, err := regular.ReadNoFollow(filepath.Join(dir, x.path), maxInput)
		if err != nil {
			return nil, err.Error()
		}
		content := string(raw)
		if f.Comment != "" {
			var ok bool
			if content, ok = withoutComments(content, f.Comment); !ok {
				return nil, x.path + " has other characters than printable ASCII"
			}
		}
		for _, text := range f.Refuse {
			if strings.Contains(content, text) {
				return nil, x.path + " has " + strings.TrimSpace(text)
			}
		}
	}
	return w, ""
}

// withoutComments returns what a reader of lines takes in, each line without the space around it and
// after a newline. A line that ends with a backslash goes on in the next one. It is false for a text
// with characters that end a line, and so a comment, for some readers only.
func withoutComments(text, comment string) (string, bool) {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r > '~' }) {
		return "", false
	}
	var b strings.Builder
	on := false
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		at := strings.Index(line, comment)
		for at > 0 && line[at-1] != ' ' && line[at-1] != '\t' {
			next := strings.Index(line[at+1:], comment)
			if next < 0 {
				at = -1
				break
			}
			at += 1 + next
		}
		if at >= 0 {
			line = line[:at]
		}
		line = strings.TrimSpace(line)
		if !on {
			b.WriteByte('\n')
		}
		line, on = strings.CutSuffix(line, "\\")
		b.WriteString(line)
	}
	return b.String(), true
}

// mirror finds another registry that the caller or the project names. It counts only if the
// user's policy lists its host: both could be somebody's way out.
func (w *Work) mirror(f *atip.Fetch, getenv func(string) string, listed func(host string) bool) string {
	if f.Mirror == "" {
		return ""
	}
	named := getenv(f.Mirror)
	if f.File != "" {
		raw, err := regular.ReadNoFollow(filepath.Join(w.Dir, f.File), maxInput)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err.Error()
		}
		for line := range strings.Lines(string(raw)) {
			key, value, _ := strings.Cut(line, "=")
			switch key, value = strings.TrimSpace(key), strings.Trim(strings.TrimSpace(value), `"'`); {
			case key == "" || key[0] == '#' || key[0] == ';':
			case key == f.Key && named == "":
				named = value
			case key == f.Key, quiet(key):
			default:
				return f.File + " sets " + key
			}
		}
	}
	if named == "" {
		return ""
	}
	var hosts []string
	for _, one := range strings.FieldsFunc(named, func(r rune) bool { return r == ',' || r == '|' }) {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil {
			return "the registry " + one + " is no plain address"
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
		}
		host := u.Hostname()
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		if host += ":" + port; !listed(host) {
			return "the registry " + host + " is not in network.allow of your policy"
		}
		hosts = append(hosts, host)
	}
	w.Hosts = hosts
	w.Env = append(w.Env, [2]string{f.Mirror, named})
	return ""
}

// quiet reports a setting of a project that neither leads elsewhere nor starts anything.
func quiet(key string) bool {
	switch key {
	case "audit", "fund", "save-exact", "engine-strict", "package-lock", "loglevel", "progress", "color", "legacy-peer-deps", "strict-peer-deps", "save-prefix", "update-notifier":
		return true
	}
	return false
}

// find lists the files that the call sees.
func (w *Work) find(f *atip.Fetch) error {
	deep := false
	for i, input := range slices.Concat(f.Inputs, f.Names) {
		if strings.HasPrefix(input, "**/") {
			deep = true
			continue
		}
		info, err := os.Lstat(filepath.Join(w.Dir, input))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return errors.New(input + " is not a file")
		default:
			w.files = append(w.files, file{input, i >= len(f.Inputs)})
		}
	}
	if !deep {
		return nil
	}
	seen := 0
	return filepath.WalkDir(w.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if seen++; seen > maxEntries || len(w.files) > maxFiles {
			return errors.New("there are too many files")
		}
		rel, err := filepath.Rel(w.Dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel != "." && (d.Name() == "node_modules" || d.Name()[0] == '.' || d.Name()[0] == '_') {
				return fs.SkipDir
			}
			return nil
		}
		for i, input := range slices.Concat(f.Inputs, f.Names) {
			pattern, ok := strings.CutPrefix(input, "**/")
			if match, _ := filepath.Match(pattern, d.Name()); !ok || !match || slices.ContainsFunc(w.files, func(x file) bool { return x.path == rel }) {
				continue
			}
			if d.Type().IsRegular() {
				w.files = append(w.files, file{rel, i >= len(f.Inputs)})
			}
		}
		return nil
	})
}

// Lay copies the files into an empty directory.
func (w *Work) Lay(to string) error {
	for _, x := range w.files {
		var raw []byte
		if !x.empty {
			var err error
			if raw, err = regular.ReadNoFollow(filepath.Join(w.Dir, x.path), maxInput); err != nil {
				return err
			}
		}
		path := subpath.Join(to, x.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Forsaken removes the directories of calls that were killed.
func Forsaken(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}
