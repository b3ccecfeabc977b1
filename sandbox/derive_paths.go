package sandbox

import (
	"path/filepath"
	"slices"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// resources grants what the call itself names, each with exactly its access.
func (d *deriver) resources() {
	for _, path := range d.in.ToolPaths {
		d.optional(expand(path, d.in.Home, d.p.Workspace), Read, "metadata")
	}
	for _, path := range d.in.CredentialFiles {
		d.named(expand(path, d.in.Home, d.p.Workspace), Read, "credential")
	}
	for i, r := range d.in.Resources {
		if r.Kind == "path" && r.Abs != "" {
			d.resource(r, describe(r, i))
		}
	}
	for _, dir := range d.in.Patterns {
		if d.in.Mirrored != nil && d.temporary(dir) {
			d.p.Temporary = true
			continue
		}
		d.optional(dir, List, "pattern")
	}
}

func (d *deriver) resource(r atip.Resource, why string) {
	path := filepath.Clean(r.Abs)
	switch {
	case r.Class == atip.ClassPolicySelf:
		d.refuse(path, "it is part of the policy")
		return
	case r.Class == atip.ClassSecret && !d.in.Granted.Has(atip.SecretRead):
		d.refuse(path, "reading secrets is not granted")
		return
	}
	if d.in.Mirrored != nil && d.temporary(path) {
		d.p.Temporary = true
		if r.Access&atip.AccessExec == 0 && d.in.Mirrored(path) {
			return // the private /tmp is granted as it is
		}
	}
	var rights Rights
	if r.Access&(atip.AccessRead|atip.AccessSecret) != 0 {
		rights |= Read
	}
	if r.Access&atip.AccessExec != 0 {
		rights |= Read | Exec
	}
	if rights != 0 && (r.Class == atip.ClassSecret || !d.listed(path, why)) {
		d.named(path, rights, why)
	}
	if r.Class == atip.ClassRoot {
		if r.Access&(atip.AccessWrite|atip.AccessDelete) != 0 {
			d.refuse(path, "a root of the file system is never granted for writing")
		}
		return
	}
	if r.Access&atip.AccessWrite != 0 && d.in.Granted.Has(atip.Write) {
		d.written(path, r.Class, why)
	}
	if r.Access&atip.AccessDelete != 0 && d.in.Granted.Has(atip.Delete) {
		d.removed(path, r.Recursive, why)
	}
}

// listed grants the names in a directory that must not be read as a whole: rules of Landlock
// hold for all that lies below. It returns false for any other path.
func (d *deriver) listed(path, why string) bool {
	canonical, dir, err := d.in.Files.Resolve(path)
	if err != nil || !dir {
		return false
	}
	keeps := d.in.Keeps != nil && d.in.Keeps(canonical)
	for _, f := range d.in.Forbidden {
		if f.Unreadable && subpath.Within(canonical, f.Path) {
			return false
		}
		keeps = keeps || f.Unreadable && subpath.Within(f.Path, canonical)
	}
	if keeps {
		d.set.add(Grant{Path: canonical, Dir: true, Rights: List, Why: why})
	}
	return keeps
}

// temporary reports a path in the shared temporary directories that leads to nothing else
// that the run has.
func (d *deriver) temporary(path string) bool {
	if !subpath.Within(path, "/tmp") && !subpath.Within(path, "/var/tmp") {
		return false
	}
	for _, other := range append([]string{d.p.Workspace, d.in.Home, d.in.Private}, d.in.GitDirs...) {
		if other != "" && subpath.Within(path, other) {
			return false
		}
	}
	return true
}

// named grants a path that somebody named, or says why not.
func (d *deriver) named(path string, r Rights, why string) {
	if path == "" {
		return
	}
	canonical, dir, err := d.in.Files.Resolve(path)
	if err != nil {
		d.refuse(path, err.Error())
		return
	}
	if d.unreadable(canonical) {
		d.refuse(canonical, "state of this program is not readable")
		return
	}
	d.set.add(Grant{Path: canonical, Dir: dir, Rights: r, Why: why})
}

// written grants a file or directory for writing. For a file that is not there yet
// the kernel needs the right on the directory that will hold it.
func (d *deriver) written(path string, class atip.Class, why string) {
	canonical, dir, err := d.in.Files.Resolve(path)
	rights := Read | Write
	if class == atip.ClassDevice {
		rights |= Ioctl
	}
	if slices.Contains(d.in.Repositories, path) {
		rights |= d.writing()
	}
	if err == nil {
		if f, bad := d.unwritable(canonical); bad {
			d.refuse(canonical, f.Why+" is never writable")
			return
		}
		if dir {
			if wide := d.tooWide(canonical); wide != "" {
				d.refuse(canonical, wide)
				return
			}
		}
		d.set.add(Grant{Path: canonical, Dir: dir, Rights: rights, Why: why})
		d.hosts = true
		return
	}
	parent, ok := d.existingParent(path)
	if !ok {
		d.refuse(path, err.Error())
		return
	}
	d.parent(path, parent, rights, why)
}

// removed grants removing path, which the kernel asks of the directory it is in. A name that the
// run makes first, or of which only the directory is known yet, is not there now.
func (d *deriver) removed(path string, recursive bool, why string) {
	canonical, dir, err := d.in.Files.Resolve(path)
	if err == nil && dir && recursive {
		if wide := d.tooWide(canonical); wide != "" {
			d.refuse(canonical, wide)
			return
		}
		d.set.add(Grant{Path: canonical, Dir: true, Rights: Read | Remove, Why: why})
		d.hosts = true
	}
	if parent, ok := d.existingParent(path); ok {
		d.parent(path, parent, Remove|List, why)
	} else if err != nil {
		d.refuse(path, err.Error())
	}
}

func (d *deriver) parent(path, parent string, r Rights, why string) {
	if subpath.Within(parent, d.p.Workspace) || subpath.Within(parent, d.p.Private) {
		d.set.add(Grant{Path: parent, Dir: true, Rights: r, Why: why})
		d.hosts = d.hosts || !subpath.Within(parent, d.p.Private)
		return
	}
	if wide := d.tooWide(parent); wide != "" {
		d.refuse(path, "its directory cannot be granted: "+wide)
		return
	}
	d.set.add(Grant{Path: parent, Dir: true, Rights: r, Why: why + " (its directory)"})
	d.hosts = true
}

// existingParent is the nearest directory above path that is there.
func (d *deriver) existingParent(path string) (string, bool) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if canonical, isDir, err := d.in.Files.Resolve(dir); err == nil {
			return canonical, isDir
		}
		if dir == "/" || dir == "." {
			return "", false
		}
	}
}

// policy adds what the policy grants by name. A path that is missing means that the
// run goes on with less; one that no run may write stops it.
func (d *deriver) policy() error {
	p := d.in.Policy
	for _, group := range [...]struct {
		rules  []PathRule
		rights Rights
	}{
		{p.Read, Read}, {p.Exec, Read | Exec}, {p.Write, Read | Write | Remove}, {p.Devices, Read | Write | Ioctl},
	} {
		for _, rule := range group.rules {
			if err := d.policyRule(rule, group.rights); err != nil {
				return err
			}
		}
	}
	for _, rule := range p.Sockets {
		canonical, dir, err := d.in.Files.Resolve(expand(rule.Path, d.in.Home, d.p.Workspace))
		switch {
		case err != nil:
			d.refusePolicy(rule, err.Error())
		case dir:
			d.refusePolicy(rule, "it is a directory, not a socket")
		case d.unreadable(canonical):
			return &ForbiddenError{Path: canonical, Pos: rule.Pos, Rule: rule.Rule, Why: "state of this program is not reachable"}
		default:
			d.p.Unix = append(d.p.Unix, canonical)
		}
	}
	return nil
}

func (d *deriver) policyRule(rule PathRule, rights Rights) error {
	path := expand(rule.Path, d.in.Home, d.p.Workspace)
	why := rule.Rule
	if why == "" {
		why = rule.Pos
	}
	// Judged by name too: a forbidden directory that is not there yet could be made.
	for _, name := range []string{path, d.canonical(path)} {
		if name == "" {
			continue
		}
		if f, bad := d.unwritable(name); bad && rights&(Write|Remove) != 0 {
			return &ForbiddenError{Path: name, Pos: rule.Pos, Rule: rule.Rule, Why: f.Path + " (" + f.Why + ") is never writable"}
		}
		if rights&Write != 0 && (subpath.Within(d.in.Home, name) || sharedTemporary(name)) && rights&Ioctl == 0 {
			return &ForbiddenError{Path: name, Pos: rule.Pos, Rule: rule.Rule, Why: "it holds what other programs rely on; name a directory in it"}
		}
		if d.unreadable(name) {
			return &ForbiddenError{Path: name, Pos: rule.Pos, Rule: rule.Rule, Why: "state of this program is not readable"}
		}
	}
	canonical, dir, err := d.in.Files.Resolve(path)
	if err != nil {
		d.refusePolicy(rule, err.Error())
		return nil
	}
	d.set.add(Grant{Path: canonical, Dir: dir, Rights: rights, Why: why})
	if rights&(Write|Remove) != 0 {
		d.hosts = true
	}
	return nil
}

// refusePolicy records a path that a policy grants in vain. Its writer is told.
func (d *deriver) refusePolicy(rule PathRule, why string) {
	at := rule.Pos
	if at == "" {
		at = rule.Rule
	}
	d.refuse(rule.Path, "policy "+at+": "+why)
}

func (d *deriver) canonical(path string) string {
	canonical, _, err := d.in.Files.Resolve(path)
	if err != nil {
		return ""
	}
	return canonical
}
