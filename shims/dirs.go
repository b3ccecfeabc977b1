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

// DirsFromEnv derives the directories from the environment. Relative paths are
// ignored, as the XDG base directory specification demands.
func DirsFromEnv(getenv func(string) string, home string) Dirs {
	d := Dirs{
		Config:  below(getenv("XDG_CONFIG_HOME"), home, ".config"),
		Data:    below(getenv("XDG_DATA_HOME"), home, ".local/share"),
		Managed: "/etc/agent-tools",
	}
	if dir := below(getenv("XDG_STATE_HOME"), home, ".local/state"); dir != "" {
		d.Index = filepath.Join(filepath.Dir(dir), "atip-exec", "index")
	}
	list := getenv("XDG_DATA_DIRS")
	if list == "" {
		list = "/usr/local/share:/usr/share"
	}
	for dir := range strings.SplitSeq(list, ":") {
		if filepath.IsAbs(dir) && len(d.DataDirs) < maxDataDirs {
			d.DataDirs = append(d.DataDirs, filepath.Join(dir, "agent-tools"))
		}
	}
	if dir := getenv("ATIP_CACHE_DIR"); filepath.IsAbs(dir) {
		d.Own, d.Data, d.CallerSupplied = d.Data, filepath.Clean(dir), true
	}
	return d
}

// below picks the XDG directory if it is usable, else its default under home.
func below(xdg, home, fallback string) string {
	switch {
	case filepath.IsAbs(xdg):
		return filepath.Join(xdg, "agent-tools")
	case filepath.IsAbs(home):
		return filepath.Join(home, fallback, "agent-tools")
	}
	return ""
}
