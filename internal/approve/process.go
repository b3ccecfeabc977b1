package approve

import (
	"errors"
	"fmt"
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
		return errors.New("the command that asks runs in this very session")
	}
	if r.TTY != "" && own[0].Terminal() == r.TTY {
		return errors.New("the command that asks runs on this very terminal")
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
	for _, name := range [...]string{"systemd", "init", "sshd", "login", "tmux: server", "screen", "SCREEN", "gnome-terminal-", "gnome-shell", "gnome-session-b", "kgx", "ptyxis",
		"konsole", "plasmashell", "kwin_wayland", "kitty", "alacritty", "wezterm-gui", "foot", "ghostty", "xterm", "xfce4-terminal", "xfce4-session", "sway", "Hyprland", "Xorg",
		"containerd-shim", "conmon", "docker-init", "tini", "dumb-init", "zellij"} {
		if p.Name == name {
			return true
		}
	}
	// Distributions give these a suffix: sshd-session, sddm-helper, gdm-session-wor.
	for _, prefix := range [...]string{"sshd-", "gdm", "sddm", "lightdm", "ptyxis-", "containerd-"} {
		if strings.HasPrefix(p.Name, prefix) {
			return true
		}
	}
	return false
}
