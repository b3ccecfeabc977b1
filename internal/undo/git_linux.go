package undo

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// gitDirs lists the git directories of a state: what has HEAD, objects and refs.
func (m *manifest) gitDirs() []string {
	var out []string
	for i := range m.entries {
		e := &m.entries[i]
		if e.kind == file && strings.HasSuffix(e.path, "/HEAD") {
			d := path.Dir(e.path)
			if o, r := m.find(d+"/objects"), m.find(d+"/refs"); o != nil && r != nil && o.kind == dir && r.kind == dir {
				out = append(out, d)
			}
		}
	}
	return out
}

// gitState reports whether a path below a git directory is part of what changes as one:
// HEAD, index, refs and their logs. Objects, hooks and settings are files like others.
func gitState(rel string) bool {
	if rel == "info/refs" {
		return true // written together with packed-refs
	}
	switch first, _, _ := strings.Cut(rel, "/"); first {
	case "objects", "hooks", "config", "config.worktree", "info", "description", "modules", "lfs":
		return false
	}
	return true
}

// means reports whether a path says what the repository's state is, as against how it is kept.
func means(rel string) bool {
	return rel == "HEAD" || rel == "index" || rel == "packed-refs" || strings.HasPrefix(rel, "refs/") || strings.HasPrefix(rel, "reftable/") ||
		strings.HasPrefix(rel, "worktrees/") && !strings.Contains(rel, "/logs/") && (strings.HasSuffix(rel, "/HEAD") || strings.HasSuffix(rel, "/index"))
}

// gitStates digests what the refs, HEAD and index of each git directory say. Packing refs,
// expiring logs and refreshing the index change files, not this. What has not been touched
// since last is not read again.
func gitStates(m, last *manifest) map[string]string {
	var out map[string]string
	for _, d := range m.gitDirs() {
		key, parts, racy := sha256.New(), []*entry{}, false
		for i := range m.entries {
			e := &m.entries[i]
			rel, ok := strings.CutPrefix(e.path, d+"/")
			if !ok || e.kind != file && e.kind != link || !means(rel) {
				continue
			}
			parts = append(parts, e)
			racy = racy || e.racy
			fmt.Fprintln(key, e.path, e.ino, e.size, e.mtime, e.ctime)
		}
		id := hex.EncodeToString(key.Sum(nil)[:12])
		if out == nil {
			out = map[string]string{}
		}
		if last != nil {
			if have, ok := strings.CutPrefix(last.Git[d], id+" "); ok && !racy {
				out[d] = id + " " + have
				continue
			}
		}
		out[d] = id + " " + m.readGit(d, parts)
	}
	return out
}

const maxGitFile = 64 << 20

func (m *manifest) readGit(d string, parts []*entry) string {
	refs := map[string]string{}
	h := sha256.New()
	for _, e := range parts {
		rel := strings.TrimPrefix(e.path, d+"/")
		text := []byte(e.target)
		if e.kind == file {
			var err error
			if text, err = m.read(e); err != nil {
				fmt.Fprintf(h, "unread %s %d %d\n", rel, e.mtime, e.size)
				continue
			}
		}
		switch {
		case rel == "packed-refs":
			for line := range bytes.Lines(text) {
				sha, name, ok := strings.Cut(strings.TrimSpace(string(line)), " ")
				if ok && sha[0] != '#' && sha[0] != '^' && refs[name] == "" {
					refs[name] = sha
				}
			}
		case path.Base(rel) == "index":
			fmt.Fprintf(h, "index %s %x\n", rel, indexDigest(text))
		case strings.HasPrefix(rel, "refs/"):
			refs[rel] = strings.TrimSpace(string(text))
		default:
			fmt.Fprintf(h, "%s %x\n", rel, sha256.Sum256(text))
		}
	}
	// A loose ref counts before a packed one, also if it was read first.
	names := make([]string, 0, len(refs))
	for name := range refs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintln(h, name, refs[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// read returns a small file of the workspace.
func (m *manifest) read(e *entry) ([]byte, error) {
	root, rel, _ := strings.Cut(e.path, "/")
	i, err := strconv.Atoi(root)
	if err != nil || i >= len(m.Roots) || e.size > maxGitFile {
		return nil, errDamaged
	}
	at, err := openRoot(m.Roots[i])
	if err != nil {
		return nil, err
	}
	defer unix.Close(at)
	fd, err := again(func() (int, error) { return unix.Openat2(at, rel, &unix.OpenHow{Flags: look, Resolve: stay}) })
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), rel)
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errDamaged
	}
	return io.ReadAll(io.LimitReader(f, maxGitFile))
}

// indexDigest digests a git index without what it caches of the files' stat: git refreshes
// that whenever it looks. An index that is not understood counts with all its bytes.
func indexDigest(data []byte) [sha256.Size]byte {
	h := sha256.New()
	all := sha256.Sum256(data)
	if len(data) < 32 || string(data[:4]) != "DIRC" {
		return all
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return all
	}
	rest := data[12:]
	for range count {
		const fixed = 62
		if len(rest) < fixed+1 {
			return all
		}
		flags := binary.BigEndian.Uint16(rest[60:])
		start := fixed
		h.Write(rest[24:28])
		h.Write(rest[40:fixed])
		if version >= 3 && flags&0x4000 != 0 {
			h.Write(rest[fixed : fixed+2])
			start += 2
		}
		if len(rest) < start {
			return all
		}
		length := bytes.IndexByte(rest[start:], 0)
		if length < 0 {
			return all
		}
		end := start + length + 1
		h.Write(rest[start:end])
		if version < 4 {
			end = (start + length + 8) &^ 7
		}
		if end > len(rest) {
			return all
		}
		rest = rest[end:]
	}
	return [sha256.Size]byte(h.Sum(nil))
}
