package place

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Dirs are our own directories. They need not exist.
type Dirs struct {
	Home    string
	Config  string // $XDG_CONFIG_HOME/agent-tools, shared with other ATIP programs
	Data    string // $XDG_DATA_HOME/agent-tools
	State   string // $XDG_STATE_HOME/atip-exec
	Cache   string // $XDG_CACHE_HOME/atip-exec
	Runtime string // $XDG_RUNTIME_DIR/atip-exec; "" without that variable
}

// Managed is the directory of the machine's administrator.
const Managed = "/etc/agent-tools"

// Own lists the directories no child may ever write.
func (d Dirs) Own() []string {
	out := []string{Managed}
	for _, p := range []string{d.Config, d.Data, d.State, d.Runtime} {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}

// HomeError says that no home directory is known.
type HomeError struct{ Why string }

func (e *HomeError) Error() string { return "home directory unknown: " + e.Why }

// FaultCode implements fault.Coded.
func (e *HomeError) FaultCode() string { return "E1002" }

// FaultDetails implements fault.Coded.
func (e *HomeError) FaultDetails() map[string]any { return map[string]any{"variable": "HOME"} }

// DirsFromEnv derives the directories from the XDG variables; as that standard
// says, relative ones are ignored. home overrides $HOME; if neither is set the
// account database is asked.
func DirsFromEnv(getenv func(string) string, home string) (Dirs, error) {
	if home == "" {
		home = getenv("HOME")
	}
	if home == "" {
		home = accountHome()
	}
	switch {
	case home == "":
		return Dirs{}, &HomeError{Why: fmt.Sprintf("HOME is not set and the account database has none for uid %d", os.Getuid())}
	case !filepath.IsAbs(home):
		return Dirs{}, &HomeError{Why: fmt.Sprintf("HOME is %q, which is not an absolute path", home)}
	}
	home = filepath.Clean(home)
	dir := func(variable, fallback, name string) string {
		if v := getenv(variable); filepath.IsAbs(v) {
			return filepath.Join(v, name)
		}
		return filepath.Join(home, fallback, name)
	}
	d := Dirs{
		Home:   home,
		Config: dir("XDG_CONFIG_HOME", ".config", "agent-tools"),
		Data:   dir("XDG_DATA_HOME", ".local/share", "agent-tools"),
		State:  dir("XDG_STATE_HOME", ".local/state", "atip-exec"),
		Cache:  dir("XDG_CACHE_HOME", ".cache", "atip-exec"),
	}
	if v := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(v) {
		d.Runtime = filepath.Join(v, "atip-exec")
	}
	return d, nil
}

func accountHome() string {
	if p, err := os.UserHomeDir(); err == nil { // USERPROFILE on Windows
		return p
	}
	uid := strconv.Itoa(os.Getuid())
	return homeOf(func(_, id string) bool { return id == uid })
}

// AccountHome is the home directory that the account database has for a user, "" if none;
// unlike HOME it is not the caller's to choose.
func AccountHome(uid int) string {
	want := strconv.Itoa(uid)
	return homeOf(func(_, id string) bool { return id == want })
}

// homeOf reads the account file directly: os/user would link the C library's
// resolver or its own cache into every start.
func homeOf(match func(user, uid string) bool) string {
	f, err := os.Open("/etc/passwd")
	if err != nil {
		return ""
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		if fields := strings.Split(s.Text(), ":"); len(fields) >= 6 && match(fields[0], fields[2]) && filepath.IsAbs(fields[5]) {
			return fields[5]
		}
	}
	return ""
}
