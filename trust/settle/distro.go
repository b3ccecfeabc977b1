package settle

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
)

// The package database is slow to ask. An answer holds for a file as it is and for the
// database as it is: both are in the key.

// databases change their time whenever a package is installed or removed.
var databases = [...]string{"/var/lib/dpkg/status", "/var/lib/dpkg/info", "/var/lib/rpm", "/usr/lib/sysimage/rpm", "/lib/apk/db/installed", "/var/lib/pacman/local"}

// asksDistro reports whether the verifier is asked about the package of a file.
func (s *Session) asksDistro(q Query) bool {
	return q.Kind == "tool" && q.Path != "" && (q.Distro || s.Stated.Distro == "db" || s.Stated.Distro == "chain")
}

// distroCached reports whether an answer that a scan stored counts.
func (s *Session) distroCached(q Query) bool {
	if q.Kind != "tool" || q.Path == "" || s.Stated.Distro != "" && s.Stated.Distro != "cached" || s.State == "" || s.Nested {
		return false
	}
	if s.scanned == unknown {
		s.scanned = never
		if _, err := os.Stat(s.distroDir()); err == nil {
			s.scanned = once
		}
	}
	return s.scanned == once
}

// Whether a scan has stored anything: most machines ask for one directory and no more.
const (
	unknown = iota
	never
	once
)

func (s *Session) distroDir() string { return filepath.Join(s.State, "verdict", "distro") }

func (s *Session) distroPath(q Query) string {
	return filepath.Join(s.distroDir(), s.distroKey(q)+".json")
}

func (s *Session) distroKey(q Query) string {
	k := newKey()
	k.add("distro/1", q.Path, q.SHA256)
	printFile(k, q.Path)
	for _, path := range databases {
		if info, err := os.Stat(path); err == nil {
			dev, ino, mtime, ctime := identity(info)
			k.add(path, itoa(int(dev)), itoa(int(ino)), itoa(int(mtime)), itoa(int(ctime)))
		}
	}
	return k.sum()
}

// distro is the stored answer about a file.
func (s *Session) distro(q Query) trust.Distro {
	raw, ok := readOwn(s.distroPath(q))
	if !ok {
		return trust.DistroUnknown
	}
	var r record
	if json.Unmarshal(raw, &r) != nil || r.V != 1 {
		return trust.DistroUnknown
	}
	return r.Settled.Distro
}

// HasDistro reports whether an answer is stored for the file as it is.
func (s *Session) HasDistro(q Query) bool { return s.distro(q) != trust.DistroUnknown }

// KeepDistro stores an answer of the package database for later runs.
func (s *Session) KeepDistro(q Query, answer trust.Settled) {
	if answer.Distro == trust.DistroUnknown || s.State == "" || s.Nested {
		return
	}
	raw, err := json.Marshal(record{V: 1, Settled: trust.Settled{Distro: answer.Distro}})
	if err == nil && private(filepath.Join(s.State, "verdict")) && private(s.distroDir()) {
		_ = shims.WriteFile(s.distroPath(q), raw)
	}
}
