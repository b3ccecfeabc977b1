package authority

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
)

// approvalGrace is how long an approval at hand stays good after its time while the
// registry cannot be asked.
const approvalGrace = 7 * 24 * time.Hour

// Approval says why one file is not approved, "" if it is.
func (a *Authority) Approval(list policy.Allowlist, part trust.Part) (string, error) {
	id, name := registryOf(list)
	if id == "" {
		return "cannot be approved: " + list.File + " demands it and names no registry.url", nil
	}
	path := a.Shims.ApprovalPath(id, part.Digest)
	_, meta, approved := shims.Cached(path)
	again := a.refresh() && a.Starts && !a.offline()
	if approved && a.Began.Before(meta.Expires) && !again {
		return "", nil
	}
	miss, missed := shims.Missed(path, a.Began)
	if (!missed || again) && a.Starts && !a.offline() {
		a.askApproval(id, part.Digest)
		_, meta, approved = shims.Cached(path)
		miss, missed = shims.Missed(path, time.Now())
	}
	switch {
	case missed && miss.Kind == shims.Absent:
		return "is not approved by " + name, nil
	case missed && miss.Kind == shims.Refused:
		return "is not approved by " + name + ": " + miss.Why, nil
	case approved && a.Began.Before(meta.Expires.Add(approvalGrace)):
		if !a.Began.Before(meta.Expires) {
			a.Warn("registry_unavailable: the approval of " + part.Path + " is old and " + name + " was not asked")
		}
		return "", nil
	case !a.Starts:
		a.Pending(name + " would be asked whether it approves sha256:" + part.Digest)
		return "is not known to be approved by " + name, nil
	case a.offline():
		return "", fault.New(errcode.Offline, "offline, and it is not known whether "+name+" approves "+part.Path).With("digest", part.Digest).With("policy", list.File)
	}
	message := name + " must approve " + part.Path + " and cannot be asked"
	if missed {
		message += ": " + miss.Why
	}
	return "", fault.New(errcode.RegistryUnavailable, message).With("digest", part.Digest).With("policy", list.File)
}

// registryOf names the registry of a demand: the one in whose folder the document lies,
// or the one that it names.
func registryOf(list policy.Allowlist) (id, name string) {
	if list.Layer == policy.LayerOrg {
		id = filepath.Base(filepath.Dir(list.File))
		if _, meta, ok := shims.Cached(list.File); ok && meta.Registry != "" {
			return id, "registry " + meta.Registry
		}
		return id, "the registry of " + list.File
	}
	if list.Registry == "" {
		return "", ""
	}
	url := strings.TrimRight(list.Registry, "/")
	return shims.RegistryID(url), "registry " + url
}

// askApproval lets the program beside ours ask; the answer lies in files.
func (a *Authority) askApproval(id, digest string) {
	more := []string{"--approved-by", id}
	if a.refresh() {
		more = append(more, "--refresh")
	}
	cmd, cancel, why := a.fetcher(digest, more...)
	if why != "" {
		a.Warn(why)
		return
	}
	defer cancel()
	_ = cmd.Run() // whatever its status, only what it kept counts
}
