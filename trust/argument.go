package trust

// HoldArgument adds a file that an interpreter was told to run, such as the
// script in "python3 script.py", to the chain of f: opened, held and hashed like
// the program itself. The caller knows from metadata which argument it is; cwd is
// the child's directory.
func (o Opener) HoldArgument(f *File, path, cwd string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.starting {
		return &ChangedError{Path: f.id.Canonical, Why: "it is being started"}
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
