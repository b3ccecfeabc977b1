// Package fetch prepares the call that fetches what a project declares: which files of the project
// it sees, which hosts it reaches. It runs no code of the project, and sees none.
package fetch

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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
	Dir     string      `json:"dir"`            // of the project, whose files are copied
	Root    bool        `json:"root,omitempty"` // the call starts in /
	Once    string      `json:"once,omitempty"` // the name of these declarations: fetched before a command that needs no network, if that was not done yet
	Hosts   []string    `json:"hosts"`
	Env     [][2]string `json:"-"` // of the call
	Offline [][2]string `json:"-"` // of the command afterwards
	Starts  []string    `json:"-"` // what the call may start, besides its own program
	Closed  bool        `json:"-"` // and nothing else
	By      string      `json:"-"` // the file of the program that was meant

	files []file
}

// Same reports the same call for the same project.
func (w *Work) Same(x *Work) bool { return x.Dir == w.Dir && slices.Equal(x.Argv, w.Argv) }

type file struct {
	path  string // below Dir
	empty bool   // only its name counts
}

// Place is where a command was typed, and what holds there.
type Place struct {
	Dir, Top, Home string // Top is the workspace
	Getenv         func(string) string
	Listed         func(host string) bool // the user's policy names it
	Done           func(name string) bool // the declarations of that name were fetched already
}

// Find prepares the call for a command of tool. why says what keeps the command from being split.
// Both are empty for a command that needs no network and before which nothing has to be fetched.
func Find(f *atip.Fetch, tool string, at Place) (w *Work, why string) {
	w = &Work{Argv: append([]string{tool}, f.Words...), Dir: at.Dir, Root: f.Root, Hosts: f.Hosts, Env: slices.Clone(f.Env), Offline: f.OfflineEnv, Starts: f.Starts, Closed: f.Closed}
	has := func(name string) bool {
		info, err := os.Lstat(filepath.Join(w.Dir, name))
		return err == nil && info.Mode().IsRegular()
	}
	for f.Up && w.Dir != at.Top && !slices.ContainsFunc(f.Needs, has) {
		w.Dir = filepath.Dir(w.Dir)
	}
	if !slices.ContainsFunc(f.Needs, has) {
		return nil, "there is no " + strings.Join(f.Needs, " or ")
	}
	if len(f.As) > 0 {
		for _, name := range f.Unless {
			if _, err := os.Lstat(filepath.Join(w.Dir, name)); err == nil {
				return nil, ""
			}
		}
		if w.Once, why = w.name(f); w.Once == "" || at.Done(w.Once) {
			return nil, why
		}
	}
	if why := w.mirror(f, at); why != "" {
		return nil, why
	}
	if err := w.find(f); err != nil {
		return nil, err.Error()
	}
	for _, name := range slices.Concat(f.Needs, f.Looks) {
		raw, err := regular.ReadNoFollow(filepath.Join(w.Dir, name), maxInput)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err.Error()
		}
		content := string(raw)
		if f.Comment != "" {
			var ok bool
			if content, ok = withoutComments(content, f.Comment); !ok {
				return nil, name + " has other characters than printable ASCII"
			}
		}
		for _, text := range f.Refuse {
			if strings.Contains(content, text) {
				return nil, name + " has " + strings.TrimSpace(text)
			}
		}
		if slices.Contains(f.Needs, name) {
			if why := w.origins(f, content, at.Listed); why != "" {
				return nil, name + " names " + why
			}
		}
	}
	return w, ""
}

// name is a name for what the inputs of the directory itself declare, "" if they declare nothing.
func (w *Work) name(f *atip.Fetch) (name, why string) {
	sum, declared := sha256.New(), len(f.Declares) == 0
	for _, input := range f.Inputs {
		raw, err := regular.ReadNoFollow(filepath.Join(w.Dir, input), maxInput)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err.Error()
		}
		fmt.Fprintf(sum, "%q %d ", input, len(raw))
		sum.Write(raw)
		declared = declared || slices.ContainsFunc(f.Declares, func(text string) bool { return strings.Contains(string(raw), text) })
	}
	if !declared {
		return "", ""
	}
	fmt.Fprintf(sum, "%q", w.Argv)
	return hex.EncodeToString(sum.Sum(nil)[:16]), ""
}

// origins adds the hosts of the addresses that a lock names to those of the call. why is one that is
// neither among these, nor known, nor listed by the user.
func (w *Work) origins(f *atip.Fetch, content string, listed func(host string) bool) (why string) {
	for _, mark := range f.Origins {
		rest := content
		for {
			_, after, ok := strings.Cut(rest, mark)
			if !ok {
				break
			}
			rest = after
			end := strings.IndexAny(after, "\"'\n,}) ")
			if end < 0 {
				end = len(after)
			}
			address := after[:end]
			if strings.HasSuffix(mark, "http") {
				address = "http" + address
			}
			if slices.Contains(f.Known, address) {
				continue
			}
			host, ok := hostOf(address)
			switch {
			case !ok:
				return strings.TrimSpace(mark) + address
			case slices.Contains(w.Hosts, strings.TrimSuffix(host, ":443")) || slices.Contains(w.Hosts, host):
			case listed(host):
				w.Hosts = append(slices.Clone(w.Hosts), host)
			default:
				return host + ", which is not in network.allow of your policy"
			}
		}
	}
	return ""
}

// hostOf is the host and port of an address of a registry.
func hostOf(address string) (host string, ok bool) {
	address = strings.TrimPrefix(strings.TrimPrefix(address, "sparse+"), "registry+")
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil {
		return "", false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	if host = u.Hostname(); strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port, true
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

// mirror finds another registry that the caller, the user or the project names. It counts only if the
// user's policy lists its host: any other could receive what a run wants to send out.
func (w *Work) mirror(f *atip.Fetch, at Place) string {
	named := ""
	if f.Mirror != "" {
		named = at.Getenv(f.Mirror)
	}
	for _, file := range f.Settings {
		value, why := w.setting(f, file[0], file[1], at.Home)
		if why != "" {
			return why
		}
		named = cmp.Or(named, value)
	}
	if named == "" {
		return ""
	}
	var hosts []string
	for _, one := range strings.FieldsFunc(named, func(r rune) bool { return r == ',' || r == '|' }) {
		host, ok := hostOf(one)
		if !ok {
			return "the registry " + one + " is no plain address"
		}
		if !at.Listed(host) {
			return "the registry " + host + " is not in network.allow of your policy"
		}
		hosts = append(hosts, host)
	}
	w.Hosts = hosts
	if f.Mirror != "" {
		// First, as others may be made of it.
		w.Env = slices.DeleteFunc(w.Env, func(kv [2]string) bool { return kv[0] == f.Mirror })
		w.Env = slices.Insert(w.Env, 0, [2]string{f.Mirror, named})
	}
	return ""
}

// setting is the registry that a file of settings names under key. One of the project must say
// nothing else that leads elsewhere or starts something; of the user's own only that key matters.
func (w *Work) setting(f *atip.Fetch, name, key, home string) (value, why string) {
	path, own := strings.CutPrefix(name, "~/")
	if own {
		path = filepath.Join(home, path)
	} else {
		path = filepath.Join(w.Dir, path)
	}
	raw, err := regular.ReadNoFollow(path, maxInput)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err.Error()
	}
	for line := range strings.Lines(string(raw)) {
		if strings.HasSuffix(name, ".yml") && (line[0] == ' ' || line[0] == '-') {
			continue // of the setting above
		}
		line = strings.TrimSpace(line)
		end := strings.IndexAny(line, "=: \t")
		if end < 0 {
			end = len(line)
		}
		switch set := line[:end]; {
		case line == "" || line[0] == '#' || line[0] == ';':
		case set == key:
			if value == "" {
				value = strings.Trim(strings.TrimLeft(line[end:], "=: \t"), `"'`)
			}
		case own, slices.Contains(f.Quiet, set):
		default:
			return "", name + " sets " + set
		}
	}
	return value, ""
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
			if _, err := os.Lstat(filepath.Join(path, "CACHEDIR.TAG")); err == nil {
				return fs.SkipDir // of a build
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

// again is how long what could not be fetched is not tried again before a command that may do without.
const again = 10 * time.Minute

// Done reports whether the declarations of that name were fetched into the private directory of a
// workspace, or could not be just now. Code of the workspace writes there, and may say so as well: its
// build then lacks them.
func Done(private, name string) bool {
	root, err := os.OpenRoot(private)
	if err != nil {
		return false
	}
	defer root.Close()
	info, err := root.Lstat("fetched/" + name)
	return err == nil && info.Mode().IsRegular() && (info.Size() == 0 || time.Since(info.ModTime()) < again)
}

// Note keeps for Done what became of it. Nothing is lost if it cannot.
func Note(private, name string, fetched bool) {
	root, err := os.OpenRoot(private)
	if err != nil {
		return
	}
	defer root.Close()
	what := "failed\n"
	if fetched {
		what = ""
	}
	_ = root.MkdirAll("fetched", 0o700)
	_ = root.Remove("fetched/" + name)
	_ = root.WriteFile("fetched/"+name, []byte(what), 0o600)
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
