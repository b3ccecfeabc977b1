package approve

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Process is one process on the way from a command to the first process.
type Process struct {
	PID   int
	SID   int
	TTY   int    // number of its controlling terminal, 0 for none
	Start string // clock ticks since the machine started: tells a reused number apart
	Name  string
}

// Key names a process for as long as the machine runs.
func (p Process) Key() string { return strconv.Itoa(p.PID) + ":" + p.Start }

// Terminal names a controlling terminal, "" for none.
func (p Process) Terminal() string {
	if p.TTY == 0 {
		return ""
	}
	return strconv.Itoa(p.TTY)
}

// Apart checks that whoever answers is not whoever asked: another session, another
// terminal, and no process in common below what starts sessions. An agent that gets
// around this still lacks the key; it is a fence, not the wall.
func (r Requester) Apart(own []Process) error {
	if len(own) == 0 {
		return nil
	}
	if r.SID != 0 && own[0].SID == r.SID {
		return errors.New("the requesting command runs in this session")
	}
	if r.TTY != "" && own[0].Terminal() == r.TTY {
		return errors.New("the requesting command runs on this terminal")
	}
	theirs := map[string]bool{}
	for _, key := range r.Ancestry {
		theirs[key] = true
	}
	for _, p := range own {
		if theirs[p.Key()] && !startsSessions(p) {
			return fmt.Errorf("this terminal was started by process %d (%s), which also started the command that asks", p.PID, p.Name)
		}
	}
	return nil
}

// startsSessions reports whether a process may be in common: the first process, and
// what opens terminals for people without having one itself.
func startsSessions(p Process) bool {
	if p.TTY != 0 {
		return false
	}
	if p.PID == 1 {
		return true
	}
	return opensTerminals(p) || named(p, []string{"systemd", "init", "gnome-shell", "gnome-session-b", "plasmashell", "kwin_wayland", "xfce4-session", "sway", "Hyprland", "Xorg",
		"containerd-shim", "conmon", "docker-init", "tini", "dumb-init"}, "gdm", "sddm", "lightdm", "containerd-")
}

// opensTerminals reports whether a process is what people get a terminal from.
func opensTerminals(p Process) bool {
	return named(p, []string{"sshd", "dropbear", "mosh-server", "login", "tmux: server", "screen", "SCREEN", "zellij", "gnome-terminal-", "kgx", "ptyxis", "konsole", "yakuake", "kitty", "alacritty",
		"wezterm-gui", "foot", "ghostty", "xterm", "urxvt", "rxvt", "st", "rio", "xfce4-terminal", "mate-terminal", "lxterminal", "qterminal", "tilix", "terminator", "guake", "cosmic-term"},
		"sshd-", "ptyxis-", "Relay(", "SessionLeader")
}

// named compares the name of a process. Distributions give some a suffix: sshd-session,
// sddm-helper, gdm-session-wor.
func named(p Process, names []string, prefixes ...string) bool {
	return slices.Contains(names, p.Name) || slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(p.Name, prefix) })
}

// Opened checks that the terminal of a process was opened by what people get terminals from: a
// terminal program, a login, ssh. One that an agent makes for itself is led by a process that the
// agent started, or whose parent has gone. Names can be taken, so this is a fence as well.
func Opened(own []Process) error {
	if len(own) == 0 {
		return nil
	}
	session := own[0].SID
	for i, p := range own {
		switch {
		case p.PID != session:
		case i+1 == len(own):
			return nil // the first process of a container, or one that was put there from outside
		case opensTerminals(own[i+1]):
			return nil
		case named(own[i+1], []string{"sudo", "su", "doas"}) && own[i+1].SID != session:
			session = own[i+1].SID // they give the other user a terminal of its own
		default:
			return fmt.Errorf("this terminal was opened by process %d (%s), which is no terminal program, login or ssh server", own[i+1].PID, own[i+1].Name)
		}
	}
	return errors.New("the process that leads this session did not start this one")
}
