package run

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/atip-dev/atip-exec/atip"
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
func (p *Plan) metadata(q shims.Query) (shims.Found, error) {
	found, err := p.memo.lookup(q, p.shimDirs)
	if err != nil {
		return found, err
	}
	again, unknown := p.askRegistries(q, found)
	switch {
	case unknown:
		found.Document, found.Raise = nil, nil
		found.Provenance = atip.Provenance{Channel: "none", Binding: "none", Source: "none"}
	case again:
		return shims.Lookup(q, p.shimDirs)
	}
	return found, nil
}

// askRegistries fetches the metadata of a digest that no local source knows, if the
// user configured a registry. It is done by the program beside ours, because an HTTP
// client would cost every command its start. It reports whether to look again;
// unknown means that no lower source may answer either.
func (p *Plan) askRegistries(q shims.Query, found shims.Found) (again, unknown bool) {
	if q.Digest == "" || q.NameOnly || found.Provenance.Binding == "hash" || !p.registries() {
		return false, false
	}
	if _, missed := shims.Missed(p.shimDirs.ShimPath(q.Digest), p.began); missed {
		return false, false
	}
	if !p.starts {
		p.pending = append(p.pending, "a registry would be asked for the metadata of sha256:"+q.Digest)
		return false, false
	}
	helper := filepath.Join(filepath.Dir(p.machine.Self), "atip")
	if info, err := os.Stat(helper); err != nil || foreignWriter(info, p.machine.UID) != "" {
		p.Warnings = append(p.Warnings, "registry_unavailable: "+helper+" is not there or can be written by others")
		return false, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), registryPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, helper, "fetch-shim", q.Digest, "-o", "json")
	cmd.Env = p.machine.Environ
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, false
	case errors.As(err, &exit) && exit.ExitCode() == fetchRefused:
		p.Warnings = append(p.Warnings, "a registry's answer about sha256:"+q.Digest+" was refused; the tool counts as unknown")
		return false, true
	case errors.As(err, &exit) && exit.ExitCode() == fetchUnavailable:
		p.Warnings = append(p.Warnings, "registry_unavailable: local metadata is used")
	default:
		p.Warnings = append(p.Warnings, "registry_unavailable: "+err.Error())
	}
	return false, false
}

// registries reports whether the user or the administrator configured one.
func (p *Plan) registries() bool {
	if offline := p.machine.Getenv("ATIP_OFFLINE"); offline != "" && offline != "0" {
		return false
	}
	if p.machine.Getenv("ATIP_REGISTRIES") != "" {
		return true
	}
	for _, dir := range [...]string{p.shimDirs.Config, p.shimDirs.Managed} {
		if dir == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "registries.json")); err == nil {
			return true
		}
	}
	return false
}
