package shims

import (
	"path/filepath"
	"strings"
)

// maxDataDirs bounds how many entries of XDG_DATA_DIRS one look-up opens.
const maxDataDirs = 3

// Dirs are the agent-tools directories. An empty string means that the directory
// does not exist for this caller.
type Dirs struct {
	Config   string   // of the user: overrides
	Data     string   // of the user: shims, native documents
	Managed  string   // of the administrator: overrides
	DataDirs []string // of the system: shims by hash
	Index    string   // of the user's state: where large documents are indexed
	// Own is what Data would be if the caller had not chosen it, else "": what registries demand and approve is
	// kept there, since who could plant an approval would need none.
	Own string
	// CallerSupplied says that the caller chose Data by ATIP_CACHE_DIR. What lies
	// there could have been planted for this very call, so it is rank user.
	CallerSupplied bool
}

// DirsOf puts the directories of the account together with those that the environment names:
// XDG_DATA_DIRS, as far as it leads to the system's own, and ATIP_CACHE_DIR, whose documents
// are believed less. What is "" does not exist.
func DirsOf(config, data, state string, getenv func(string) string) Dirs {
	d := Dirs{Config: config, Data: data, Managed: "/etc/agent-tools"}
	if state != "" {
		d.Index = filepath.Join(state, "index")
	}
	list := getenv("XDG_DATA_DIRS")
	if list == "" {
		list = "/usr/local/share:/usr/share"
	}
	for dir := range strings.SplitSeq(list, ":") {
		if filepath.IsAbs(dir) && ofSystem(filepath.Clean(dir)) && len(d.DataDirs) < maxDataDirs {
			d.DataDirs = append(d.DataDirs, filepath.Join(dir, "agent-tools"))
		}
	}
	if dir := getenv("ATIP_CACHE_DIR"); filepath.IsAbs(dir) {
		d.Own, d.Data, d.CallerSupplied = d.Data, filepath.Clean(dir), true
	}
	return d
}

// ofSystem reports a directory that no user writes: metadata of the system is believed, and
// the caller of a command may set XDG_DATA_DIRS.
func ofSystem(dir string) bool {
	for _, top := range [...]string{"/usr/", "/opt/", "/nix/", "/gnu/", "/snap/", "/run/current-system/", "/var/lib/flatpak/", "/var/lib/snapd/"} {
		if strings.HasPrefix(dir, top) {
			return true
		}
	}
	return false
}
