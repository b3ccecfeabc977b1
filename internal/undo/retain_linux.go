package undo

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// slack is how many runs beyond the limit are kept until the next tidying.
const slack = 20

// Tidy drops what is beyond the limits: old runs of this workspace, and if all stores
// together are too large those of workspaces that are gone, then the oldest. Most calls only look
// at how long the list of runs is.
func (s *Store) Tidy(now time.Time) {
	mark := filepath.Join(s.dir, "tidied")
	runs := s.Runs()
	info, err := os.Lstat(mark)
	if err == nil && now.Sub(info.ModTime()).Abs() < time.Hour && len(runs) < s.place.Limits.Runs+slack && len(runs)%16 != 0 {
		return
	}
	os.WriteFile(mark, nil, 0o600)
	keep := runs
	if n := len(keep) - s.place.Limits.Runs; n > 0 {
		keep = keep[n:]
	}
	for len(keep) > 1 && now.Sub(keep[0].Time) > s.place.Limits.Age {
		keep = keep[1:]
	}
	s.keep(keep)
	for len(keep) > 1 && size(s.dir) > s.place.Limits.Bytes {
		keep = keep[(len(keep)+3)/4:]
		s.keep(keep)
	}
	s.others()
}

// keep drops every state, and every content, that none of these runs needs.
func (s *Store) keep(runs []Run) {
	all := s.seqs()
	if len(all) == 0 {
		return
	}
	live := map[uint64]bool{all[len(all)-1]: true}
	if last, _ := s.last(); last != nil {
		live[last.Seq] = true
	}
	for _, r := range runs {
		live[r.Before], live[r.After] = true, true
	}
	packs, bigs := map[string]bool{}, map[string]bool{}
	for _, seq := range slices.Backward(all) {
		if !live[seq] {
			continue
		}
		// Of a state that was written as a difference its own entries: those of its base, an older one, come with that.
		h, body, err := s.read(seq)
		if err != nil {
			continue
		}
		m, err := decode(h, body, nil)
		if err != nil {
			continue
		}
		live[h.Base] = true
		for i := range m.entries {
			if e := &m.entries[i]; e.known && e.pack != 0 {
				packs[seqName(e.pack)] = true
			} else if e.known {
				bigs[hex.EncodeToString(e.sum[:])] = true
			}
		}
	}
	for _, seq := range all {
		if live[seq] {
			continue
		}
		os.Remove(filepath.Join(s.dir, "manifest", seqName(seq)))
	}
	drop := func(dir string, wanted map[string]bool) {
		list, _ := os.ReadDir(filepath.Join(s.dir, dir))
		for _, d := range list {
			name := strings.TrimSuffix(d.Name(), compressed)
			if !wanted[name] {
				os.Remove(filepath.Join(s.dir, dir, d.Name()))
			}
		}
	}
	// Bases of bases do not exist, so one pass has seen every content.
	drop("pack", packs)
	drop("big", bigs)
	for _, d := range [...]string{"manifest"} {
		list, _ := os.ReadDir(filepath.Join(s.dir, d))
		for _, f := range list {
			if strings.HasSuffix(f.Name(), ".tmp") {
				os.Remove(filepath.Join(s.dir, d, f.Name()))
			}
		}
	}
	if len(runs) < len(s.Runs()) {
		var out []byte
		for _, r := range runs {
			line, err := json.Marshal(r)
			if err != nil {
				return
			}
			out = append(append(out, line...), '\n')
			if r.After != 0 {
				line, _ = json.Marshal(Run{Run: r.Run, Time: r.Time, After: r.After, Counts: r.Counts})
				out = append(append(out, line...), '\n')
			}
		}
		s.put("runs", out, true)
	}
}

// size is what the files below a directory take.
func size(dir string) (total int64) {
	filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}

// others drops whole stores while all of them together are too large.
func (s *Store) others() {
	type store struct {
		name string
		size int64
		gone bool
		used time.Time
	}
	var list []store
	total := int64(0)
	for _, p := range Places(s.place.Base) {
		at := filepath.Join(s.place.Base, p.Name)
		one := store{name: p.Name, size: size(at)}
		if _, err := os.Lstat(p.Root); err != nil {
			one.gone = true
		}
		if info, err := os.Lstat(filepath.Join(at, "runs")); err == nil {
			one.used = info.ModTime()
		}
		total += one.size
		if at != s.dir {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b store) int {
		if a.gone != b.gone {
			if a.gone {
				return -1
			}
			return 1
		}
		return a.used.Compare(b.used)
	})
	for _, one := range list {
		if total <= s.place.Limits.All {
			return
		}
		if Forget(s.place.Base, one.name, s.place.UID) == nil {
			total -= one.size
		}
	}
}

// Forget removes the store of a workspace, named as Places does.
func Forget(base, name string, uid int) error {
	at := filepath.Join(base, name)
	if filepath.Base(name) != name || private(at, uid) != nil {
		return &Error{Op: "forget", Path: at, Err: errNotOurs}
	}
	if err := os.RemoveAll(at); err != nil {
		return &Error{Op: "forget", Path: at, Err: err}
	}
	return nil
}
