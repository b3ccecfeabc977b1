package trust

import (
	"os"
	"path/filepath"
)

// maxArgument bounds the program texts that are read for their digest: planning has to end, and a sparse
// file of any size costs nobody anything. 64 MiB take 40 ms.
const maxArgument = 64 << 20

// HoldArgument adds a file that an interpreter was told to run, such as the
// script in "python3 script.py", to the chain of f: opened, held and hashed like
// the program itself. The caller knows from metadata which argument it is; cwd is
// the child's directory. One that is too large has no digest, and no pin on it holds.
func (o Opener) HoldArgument(f *File, path, cwd string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.starting {
		return &ChangedError{Path: f.id.Canonical, Why: "it is being started"}
	}
	if info, err := os.Stat(absolute(path, cwd)); err == nil && info.Size() > maxArgument {
		canonical, err := filepath.EvalSymlinks(absolute(path, cwd))
		if err != nil {
			return candidateError(path, path, err)
		}
		f.id = f.id.WithCaps(CapCodeArgument)
		f.id.Chain = append(f.id.Chain[:len(f.id.Chain):len(f.id.Chain)], Part{Role: RoleArgument, Path: canonical})
		return nil
	}
	b := &builder{o: o, word: path, cwd: cwd, parts: f.parts, caps: f.id.Caps, cache: openCache(o.CacheDir, o.ReadOnlyCache)}
	h, err := b.add(absolute(path, cwd), RoleArgument)
	if err != nil {
		return err
	}
	f.parts = b.parts
	f.id = f.id.WithCaps(append(b.caps, CapCodeArgument)...)
	f.id.Chain = append(f.id.Chain[:len(f.id.Chain):len(f.id.Chain)], h.part())
	f.id.CacheHit = f.id.CacheHit && h.hit
	unwatch(f)
	watchFile(f)
	return nil
}
