// Package outside starts the few programs that run beside the sandbox, with the rights of the
// user: what tells a person of a request, what signs, and our own helper. Their environment is
// made here and takes nothing from the caller that leads to a program, a file or a host: an
// agent that sets PATH, HOME or LD_PRELOAD could else have its code started unconfined.
package outside

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/atip-dev/atip-exec/internal/place"
)

// systemPath is where such a program finds others: directories that only root writes.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// harmless is the form of the variables that are taken over: names of a locale, of a kind of
// terminal and of a local display, none of which can be a path.
var harmless = sync.OnceValue(func() map[string]*regexp.Regexp {
	word := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.@+-]*$`)
	return map[string]*regexp.Regexp{"LANG": word, "LC_ALL": word, "LC_CTYPE": word, "LC_MESSAGES": word, "TERM": word,
		"DISPLAY": regexp.MustCompile(`^:[0-9]{1,3}(\.[0-9])?$`), "WAYLAND_DISPLAY": regexp.MustCompile(`^wayland-[0-9]{1,3}$`)}
})

// Environ is the environment of such a program: the account's home and name, the directories
// of the system, the user's session bus if there is one.
func Environ(dirs place.Dirs, getenv func(string) string) []string {
	uid := os.Getuid()
	env := []string{"PATH=" + systemPath, "HOME=" + dirs.Home, "SHELL=/bin/sh"}
	if name := place.AccountName(uid); name != "" {
		env = append(env, "USER="+name, "LOGNAME="+name)
	}
	// Where an administrator lets the environment name our directories, they stay the same.
	for _, row := range [...][3]string{{"XDG_CONFIG_HOME", dirs.Config, ".config"}, {"XDG_DATA_HOME", dirs.Data, ".local/share"}, {"XDG_STATE_HOME", dirs.State, ".local/state"}, {"XDG_CACHE_HOME", dirs.Cache, ".cache"}} {
		if dir := filepath.Dir(row[1]); row[1] != "" && dir != filepath.Join(dirs.Home, row[2]) {
			env = append(env, row[0]+"="+dir)
		}
	}
	runtime := "/run/user/" + strconv.Itoa(uid)
	if info, err := os.Stat(runtime); err == nil && info.IsDir() {
		env = append(env, "XDG_RUNTIME_DIR="+runtime)
		if info, err := os.Lstat(runtime + "/bus"); err == nil && info.Mode()&os.ModeSocket != 0 {
			env = append(env, "DBUS_SESSION_BUS_ADDRESS=unix:path="+runtime+"/bus")
		}
		if file := getenv("XAUTHORITY"); strings.HasPrefix(filepath.Clean(file), runtime+"/") {
			env = append(env, "XAUTHORITY="+filepath.Clean(file))
		}
	}
	for _, name := range [...]string{"LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TERM", "DISPLAY", "WAYLAND_DISPLAY"} {
		if value := getenv(name); value != "" && harmless()[name].MatchString(value) {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Command is a program that is started beside the sandbox. The path is absolute: PATH is not
// asked. more are variables it needs besides, of which the caller of this function vouches for
// each. It starts in the root directory.
func Command(ctx context.Context, dirs place.Dirs, getenv func(string) string, more []string, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	if !filepath.IsAbs(path) {
		cmd.Err = &os.PathError{Op: "start", Path: path, Err: os.ErrInvalid}
	}
	cmd.Env, cmd.Dir = append(Environ(dirs, getenv), more...), "/"
	return cmd
}
