package authority

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/outside"
	"github.com/atip-dev/atip-exec/internal/owner"
	"github.com/atip-dev/atip-exec/shims"
)

// registryPatience bounds the one look-up on the path of a command.
const registryPatience = 3 * time.Second

// Exit statuses of `atip fetch-shim` that mean something here.
const (
	fetchRefused     = 65 // an answer came and cannot be believed
	fetchUnavailable = 69
)

// metadata looks up what is known about a tool, first here, then in a registry.
func (a *Authority) metadata(q shims.Query) (shims.Found, error) {
	found, err := a.Memo.Lookup(q, a.Shims)
	if err != nil {
		return found, err
	}
	again, unknown := a.askRegistries(q, found)
	switch {
	case unknown:
		found.Document, found.Raise = nil, nil
		found.Provenance = atip.Provenance{Channel: "none", Binding: "none", Source: "none"}
	case again:
		return shims.Lookup(q, a.Shims)
	}
	return found, nil
}

// askRegistries fetches the metadata of a digest that no local source knows, if the
// user configured a registry. It is done by the program beside ours, because an HTTP
// client would cost every command its start. It reports whether to look again;
// unknown means that no lower source may answer either.
func (a *Authority) askRegistries(q shims.Query, found shims.Found) (again, unknown bool) {
	if q.Digest == "" || q.NameOnly || !a.registries() {
		return false, false
	}
	path := a.Shims.ShimPath(q.Digest)
	if !a.refresh() || !a.Starts {
		if found.Provenance.Binding == "hash" {
			return false, false
		}
		if miss, missed := shims.Missed(path, a.Began); missed {
			if miss.Kind == shims.Refused {
				a.Warn(refusedAnswer(q.Digest) + ": " + miss.Why)
				return false, true
			}
			return false, false
		}
	} else if _, meta, fetched := shims.Cached(path); found.Provenance.Binding == "hash" && (!fetched || meta.Registry == "") {
		return false, false // a person or the tool itself wrote it: no registry is asked
	}
	if a.offline() {
		return false, false
	}
	if !a.Starts {
		a.Pending("a registry would be asked for the metadata of sha256:" + q.Digest)
		return false, false
	}
	var more []string
	if a.refresh() {
		more = []string{"--refresh"}
	}
	cmd, cancel, why := a.fetcher(q.Digest, more...)
	if why != "" {
		a.Warn(why)
		return false, false
	}
	defer cancel()
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, false
	case errors.As(err, &exit) && exit.ExitCode() == fetchRefused:
		a.Warn(refusedAnswer(q.Digest))
		return false, true
	case errors.As(err, &exit) && exit.ExitCode() == fetchUnavailable:
		a.Warn("registry_unavailable: local metadata is used")
	default:
		a.Warn("registry_unavailable: " + err.Error())
	}
	return false, false
}

func refusedAnswer(digest string) string {
	return "a registry's answer about sha256:" + digest + " was refused; the tool counts as unknown"
}

// fetcher is the program beside ours that asks registries about a digest; why says that
// it cannot be started.
func (a *Authority) fetcher(digest string, more ...string) (cmd *exec.Cmd, cancel func(), why string) {
	helper := filepath.Join(filepath.Dir(a.Machine.Self), "atip")
	if info, err := os.Stat(helper); err != nil || owner.ForeignWriter(helper, info, a.Machine.UID) != "" {
		return nil, nil, "registry_unavailable: " + helper + " is not there or can be written by others"
	}
	// All look-ups of one command share the time.
	if a.askUntil.IsZero() {
		a.askUntil = time.Now().Add(registryPatience)
	}
	ctx, cancel := context.WithDeadline(context.Background(), a.askUntil)
	cmd = outside.Command(ctx, a.Dirs, a.Machine.Getenv, a.fetching(), helper, append([]string{"fetch-shim", digest, "-o", "json"}, more...)...)
	return cmd, cancel, ""
}

// fetching lists what the caller's environment may say to the helper: which registries, whose
// answers are judged by their signatures, and the way to them. A proxy sees no more than
// that, as certificates are checked against the system's own.
func (a *Authority) fetching() []string {
	var out []string
	for _, name := range [...]string{"ATIP_REGISTRIES", "ATIP_CACHE_DIR", "ATIP_REFRESH", "ATIP_OFFLINE", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"} {
		if value := a.Machine.Getenv(name); value != "" {
			out = append(out, name+"="+value)
		}
	}
	// registries.json names the variable that holds the token of a registry.
	for _, entry := range a.Machine.Environ {
		if name, _, ok := strings.Cut(entry, "="); ok && filter.CredentialName(name) {
			out = append(out, entry)
		}
	}
	return out
}

// refresh reports whether what registries said before is to be asked for again.
func (a *Authority) refresh() bool {
	v := a.Machine.Getenv("ATIP_REFRESH")
	return a.Refresh || v != "" && v != "0"
}

func (a *Authority) offline() bool {
	v := a.Machine.Getenv("ATIP_OFFLINE")
	return v != "" && v != "0"
}

// registries reports whether the user or the administrator configured one.
func (a *Authority) registries() bool {
	if a.Machine.Getenv("ATIP_REGISTRIES") != "" {
		return true
	}
	for _, dir := range [...]string{a.Shims.Config, a.Shims.Managed} {
		if dir == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "registries.json")); err == nil {
			return true
		}
	}
	return false
}
