package shims

import (
	"reflect"
	"testing"
)

func TestDirsOf(t *testing.T) {
	sys := []string{"/usr/local/share/agent-tools", "/usr/share/agent-tools"}
	own := func(d Dirs) Dirs {
		d.Config, d.Managed, d.Index = "/h/.config/agent-tools", "/etc/agent-tools", "/h/.local/state/atip-exec/index"
		return d
	}
	const data = "/h/.local/share/agent-tools"
	for _, row := range []struct {
		name string
		env  map[string]string
		want Dirs
	}{
		{"defaults", nil, own(Dirs{Data: data, DataDirs: sys})},
		{"another home and other XDG directories are not asked", map[string]string{"HOME": "/x", "XDG_CONFIG_HOME": "/x", "XDG_DATA_HOME": "/x", "XDG_STATE_HOME": "/x"}, own(Dirs{Data: data, DataDirs: sys})},
		{"only what the system writes", map[string]string{"XDG_DATA_DIRS": "/tmp/a:rel:/usr/b:/usr/../tmp/c:/nix/d:/var/lib/flatpak/e:/usr/f"},
			own(Dirs{Data: data, DataDirs: []string{"/usr/b/agent-tools", "/nix/d/agent-tools", "/var/lib/flatpak/e/agent-tools"}})},
		{"cache dir", map[string]string{"ATIP_CACHE_DIR": "/cache/"}, own(Dirs{Data: "/cache", DataDirs: sys, Own: data, CallerSupplied: true})},
		{"relative cache dir is ignored", map[string]string{"ATIP_CACHE_DIR": "cache"}, own(Dirs{Data: data, DataDirs: sys})},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := DirsOf("/h/.config/agent-tools", data, "/h/.local/state/atip-exec", func(k string) string { return row.env[k] }); !reflect.DeepEqual(got, row.want) {
				t.Errorf("got  %+v\nwant %+v", got, row.want)
			}
		})
	}
}
