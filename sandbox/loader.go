package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// loaderOf returns the programs the kernel opens by itself to run path: interpreters
// of a script, one after the other, and the ELF loader of the last one.
func loaderOf(path string) []string {
	var out []string
	// The kernel follows at most four interpreters (BINPRM depth in fs/exec.c).
	for range 5 {
		next, err := interpreter(path)
		if err != nil || next == "" {
			return out
		}
		out = append(out, next)
		path = next
	}
	return out
}

// interpreter reads the #! line or the PT_INTERP segment of an executable; "" means
// that it needs none.
func interpreter(path string) (string, error) {
	f, err := regular.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	head = head[:n]
	if bytes.HasPrefix(head, []byte("#!")) {
		line, _, _ := strings.Cut(string(head[2:]), "\n")
		name, _, _ := strings.Cut(strings.TrimLeft(line, " \t"), " ")
		name, _, _ = strings.Cut(name, "\t")
		return strings.TrimRight(name, "\r"), nil
	}
	return elfInterpreter(f, head)
}

// elfInterpreter finds PT_INTERP in a 64-bit little-endian file, the only kind the
// supported architectures start: 32-bit programs die at their first system call.
func elfInterpreter(f io.ReaderAt, head []byte) (string, error) {
	if len(head) < 64 || !bytes.HasPrefix(head, []byte("\x7fELF\x02\x01")) {
		return "", nil
	}
	le := binary.LittleEndian
	at, size, count := int64(le.Uint64(head[32:])), int(le.Uint16(head[54:])), int(le.Uint16(head[56:]))
	if size < 56 || count == 0 || size*count > 1<<16 || at < 0 {
		return "", nil
	}
	table := make([]byte, size*count)
	if _, err := f.ReadAt(table, at); err != nil {
		return "", err
	}
	for i := range count {
		entry := table[i*size:]
		if le.Uint32(entry) != 3 { // PT_INTERP
			continue
		}
		offset, length := int64(le.Uint64(entry[8:])), le.Uint64(entry[32:])
		if length == 0 || length > 4096 || offset < 0 {
			return "", nil
		}
		name := make([]byte, length)
		if _, err := f.ReadAt(name, offset); err != nil {
			return "", err
		}
		return string(bytes.TrimRight(name, "\x00")), nil
	}
	return "", nil
}

// EnvTarget is the program that env(1) looks up to run a script whose first line names it, ""
// for any other file.
func EnvTarget(path string) string {
	f, err := regular.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) < 2 || !strings.HasSuffix(words[0], "/env") {
		return ""
	}
	for _, word := range words[1:] {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return word
		}
	}
	return ""
}

// Script reports a file whose first line names its interpreter.
func Script(path string) bool {
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 2)
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == "#!"
}

// EnvFiles says when files of secrets in the workspace are hidden from a run.
type EnvFiles uint8

// The values of EnvFiles.
const (
	EnvFilesNetwork EnvFiles = iota // in runs that reach other machines
	EnvFilesMask                    // always
	EnvFilesAllow                   // never
)

// masks lists the secrets of the workspace that the run must not read: they would leave
// through the network. Without one, only the redacted output leaves.
func (d *deriver) masks() {
	for _, path := range d.in.SecretLinks {
		if !d.entitled(path) {
			d.p.Mask, d.p.PlainRead = append(d.p.Mask, path), false
		}
	}
	for _, path := range d.in.Secrets {
		canonical, _, err := d.in.Files.Resolve(path)
		if err == nil && d.readable(canonical) && !d.entitled(path) && !d.secretGranted(canonical) {
			d.p.Mask, d.p.PlainRead = append(d.p.Mask, canonical), false
		}
	}
	for _, path := range d.in.Hidden {
		if d.readable(path) && !d.entitled(path) {
			d.p.Mask, d.p.PlainRead = append(d.p.Mask, path), false
		}
	}
}

// maxSiblings bounds the grants that stand in for one of a directory with a secret in it.
const maxSiblings = 64

// leaveOut takes the files that must not be read out of the rule set, since the kernel knows
// no exception from a rule: in place of a directory above one, each entry of it is granted but
// that. It needs a directory that nothing writes in; where there are too many entries, the
// private root covers the file.
func (d *deriver) leaveOut() {
	hidden := slices.DeleteFunc(slices.Clone(d.in.Hidden), d.entitled)
	if len(hidden) == 0 {
		return
	}
	var split grantSet
	count := 0
	var part func(dir string, g Grant) bool
	part = func(dir string, g Grant) bool {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return false
		}
		split.add(Grant{Path: dir, Dir: true, Rights: List, Why: g.Why})
		for _, e := range entries {
			path := dir + "/" + e.Name()
			switch {
			case slices.Contains(hidden, path), e.Type()&os.ModeSymlink != 0:
			case e.IsDir() && slices.ContainsFunc(hidden, func(h string) bool { return subpath.Within(h, path) }):
				if !part(path, g) {
					return false
				}
			default:
				if count++; count > maxSiblings {
					return false
				}
				split.add(Grant{Path: path, Dir: e.IsDir(), Rights: g.Rights, Why: g.Why})
			}
		}
		return true
	}
	for _, g := range d.set.list {
		above := g.Dir && g.Rights&(Read|Exec) != 0 && slices.ContainsFunc(hidden, func(h string) bool { return subpath.Within(h, g.Path) })
		switch {
		case !above:
			split.add(g)
		case g.Rights&(Write|Remove) != 0 || !part(g.Path, g):
			return
		}
	}
	d.set = split
}

// readable reports whether something of the path lies in a granted directory.
func (d *deriver) readable(path string) bool {
	for _, list := range [...][]Grant{d.p.Read, d.p.Write, d.p.Exec} {
		for _, g := range list {
			if g.Rights != List && (g.Path == path || g.Dir && subpath.Within(path, g.Path)) {
				return true
			}
		}
	}
	return false
}

// secretGranted reports whether the call was granted reading secrets and names this one, or
// what lies in it.
func (d *deriver) secretGranted(path string) bool {
	if !d.in.Granted.Has(atip.SecretRead) {
		return false
	}
	return slices.ContainsFunc(d.in.Resources, func(r atip.Resource) bool {
		return r.Kind == "path" && r.Access&(atip.AccessRead|atip.AccessSecret) != 0 && subpath.Within(r.Abs, path)
	})
}

// entitled reports whether the tool or the policy names the file.
func (d *deriver) entitled(path string) bool {
	return slices.ContainsFunc(d.in.CredentialFiles, func(f string) bool { return expand(f, d.in.Home, d.p.Workspace) == path })
}

// Overlay lays a private layer over a cache of the host: what is there is read, what is
// written stays in the layer. A cache that runs share for writing could be poisoned, and
// a cold one makes every first build slow. Only a private root can hold one.
type Overlay struct {
	Lower string // the host's cache
	Name  string // of the layer
	Upper string // the layer, chosen at the start
}

// overlay asks for one over path, if there is such a directory, and says what the
// environment is then, instead of what lower tiers have.
func (d *deriver) overlay(name, path string, env map[string]string) {
	canonical, dir, err := d.in.Files.Resolve(path)
	if path == "" || err != nil || !dir || d.tooWide(canonical) != "" || subpath.Within(canonical, d.p.Workspace) || subpath.Within(canonical, d.p.Private) || d.stray(path, canonical, dir, "cache") != "" {
		return
	}
	d.p.Overlays = append(d.p.Overlays, Overlay{Lower: canonical, Name: name})
	if d.p.OverlayEnv == nil {
		d.p.OverlayEnv = map[string]string{}
	}
	for k, v := range env {
		d.p.OverlayEnv[k] = v
	}
}

// overlays reports whether the caches of the host are there under a private layer.
func (s *Setup) overlays() bool {
	return s.tier == T3 && s.host.Overlay && s.profile.Private != "" && s.profile.Layers != "" && len(s.profile.Overlays) > 0
}

// Environment is what the run gets for its temporary files and caches. An empty value
// means that the variable is not set.
func (s *Setup) Environment() map[string]string {
	if s.tier != T3 || s.profile.Private == "" {
		return s.profile.Env
	}
	out := make(map[string]string, len(s.profile.Env)+len(s.profile.OverlayEnv))
	for k, v := range s.profile.Env {
		out[k] = v
	}
	out["TMPDIR"] = "/tmp" // the same directory, and short enough for the name of a socket
	if s.overlays() {
		for k, v := range s.profile.OverlayEnv {
			out[k] = v
		}
	}
	return out
}

// outerDir is where a private root says what it is, for a run inside it.
const outerDir = "/run/atip-exec"

// outerVersion changes with every change of Outer.
const outerVersion = 1

// Outer is the parent run of this one, whose private root this process is in. What it
// promises about its own outside holds here too; nothing in here can take it back.
type Outer struct {
	V         int         `json:"v"`
	Tier      Tier        `json:"tier"`
	ABI       int         `json:"abi"`
	Errata    int         `json:"errata"`
	Given     []Guarantee `json:"given"`
	Workspace string      `json:"workspace"`
	Protect   []string    `json:"protect"` // what was pinned if it was there, and is compared
}

// asOuter is what a run under this setup says to the runs inside it.
func (s *Setup) asOuter() *Outer {
	protect := slices.DeleteFunc(slices.Clone(s.profile.Protect), s.profile.lifts)
	return &Outer{V: outerVersion, Tier: s.tier, ABI: s.host.ABI, Errata: s.host.Errata, Given: s.given,
		Workspace: s.profile.Workspace, Protect: protect}
}

// host is what this machine enforces inside of o: the probe's answer of the parent run,
// without what its filter refuses.
func (o *Outer) host(root bool) Host {
	return Host{OS: "linux", ABI: o.ABI, Errata: o.Errata, Seccomp: true, Root: root, outer: o,
		NSWhy: "this run is inside another one, which refuses namespaces"}
}

// holds reports whether the parent run keeps g for what p describes. Its promises are
// about its own outside, so those about the workspace need the same one.
func (o *Outer) holds(g Guarantee, p *Profile) bool {
	if o == nil || !slices.Contains(o.Given, g) {
		return false
	}
	switch g {
	case FilesMeta, FilesHidden, ProcHidden, TreeKilled, ProcSignal:
		return true
	case WSProtect:
		return o.Workspace == p.Workspace && !slices.ContainsFunc(p.Protect, func(name string) bool { return !slices.Contains(o.Protect, name) })
	}
	return false // the net of the parent run has its hosts, its limits are its own
}

// Outer is the run that this process is inside of, nil if there is none that has a
// private root.
func (h Host) Outer() *Outer { return h.outer }
