package sandbox

import "github.com/atip-dev/atip-exec/atip"

// EnvFiles says when files of secrets in the workspace are hidden from a run.
type EnvFiles uint8

// The values of EnvFiles.
const (
	EnvFilesNetwork EnvFiles = iota // in runs that reach other machines
	EnvFilesMask                    // always
	EnvFilesAllow                   // never
)

// secretFiles are names under which projects keep secrets. Examples and templates of
// them end otherwise.
func secretFiles() []string {
	return []string{".env", ".env.local", ".env.development", ".env.development.local", ".env.test", ".env.test.local",
		".env.staging", ".env.production", ".env.production.local", ".envrc.local", "id_rsa", "id_ecdsa", "id_ed25519"}
}

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
	networked := d.p.Net.Mode == NetAllowlist || d.p.Net.Mode == NetFull
	if d.p.Workspace == "" || d.in.EnvFiles == EnvFilesAllow || d.in.EnvFiles == EnvFilesNetwork && !networked {
		return
	}
	for dir := d.p.Workspace; dir != ""; dir = between(d.p.Workspace, dir, d.in.Cwd) {
		for _, name := range secretFiles() {
			path := dir + "/" + name
			// A directory of that name is a virtual environment of Python or the like.
			if _, dir, err := d.in.Files.Resolve(path); err == nil && !dir && !d.entitled(path) {
				d.p.Mask = append(d.p.Mask, path)
			}
		}
	}
}

// readable reports whether something of the path lies in a granted directory.
func (d *deriver) readable(path string) bool {
	for _, list := range [...][]Grant{d.p.Read, d.p.Write, d.p.Exec} {
		for _, g := range list {
			if g.Path == path || g.Dir && within(path, g.Path) {
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
	for _, r := range d.in.Resources {
		if r.Kind == "path" && r.Access&(atip.AccessRead|atip.AccessSecret) != 0 && within(r.Abs, path) {
			return true
		}
	}
	return false
}

// entitled reports whether the tool or the policy names the file.
func (d *deriver) entitled(path string) bool {
	for _, f := range d.in.CredentialFiles {
		if expand(f, d.in.Home, d.p.Workspace) == path {
			return true
		}
	}
	return false
}
