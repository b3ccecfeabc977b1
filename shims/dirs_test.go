package shims

import (
	"reflect"
	"testing"
)

func TestDirsFromEnv(t *testing.T) {
	sys := []string{"/usr/local/share/agent-tools", "/usr/share/agent-tools"}
	for _, row := range []struct {
		name, home string
		env        map[string]string
		want       Dirs
	}{
		{"defaults", "/h", nil, Dirs{Config: "/h/.config/agent-tools", Data: "/h/.local/share/agent-tools", Managed: "/etc/agent-tools", Index: "/h/.local/state/atip-exec/index", DataDirs: sys}},
		{"no home", "", nil, Dirs{Managed: "/etc/agent-tools", DataDirs: sys}},
		{"relative home", "h", nil, Dirs{Managed: "/etc/agent-tools", DataDirs: sys}},
		{"xdg", "/h", map[string]string{"XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d", "XDG_STATE_HOME": "/s", "XDG_DATA_DIRS": "/a:rel:/b:/c:/e"},
			Dirs{Config: "/c/agent-tools", Data: "/d/agent-tools", Managed: "/etc/agent-tools", Index: "/s/atip-exec/index", DataDirs: []string{"/a/agent-tools", "/b/agent-tools", "/c/agent-tools"}}},
		{"relative xdg is ignored", "/h", map[string]string{"XDG_CONFIG_HOME": "c", "XDG_DATA_HOME": "../d"},
			Dirs{Config: "/h/.config/agent-tools", Data: "/h/.local/share/agent-tools", Managed: "/etc/agent-tools", Index: "/h/.local/state/atip-exec/index", DataDirs: sys}},
		{"cache dir", "/h", map[string]string{"ATIP_CACHE_DIR": "/cache/"},
			Dirs{Config: "/h/.config/agent-tools", Data: "/cache", Managed: "/etc/agent-tools", Index: "/h/.local/state/atip-exec/index", DataDirs: sys, Own: "/h/.local/share/agent-tools", CallerSupplied: true}},
		{"relative cache dir is ignored", "/h", map[string]string{"ATIP_CACHE_DIR": "cache"},
			Dirs{Config: "/h/.config/agent-tools", Data: "/h/.local/share/agent-tools", Managed: "/etc/agent-tools", Index: "/h/.local/state/atip-exec/index", DataDirs: sys}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := DirsFromEnv(func(k string) string { return row.env[k] }, row.home); !reflect.DeepEqual(got, row.want) {
				t.Errorf("got  %+v\nwant %+v", got, row.want)
			}
		})
	}
}
