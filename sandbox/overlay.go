package sandbox

import "github.com/atip-dev/atip-exec/internal/subpath"

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
