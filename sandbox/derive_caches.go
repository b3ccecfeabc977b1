package sandbox

import (
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/internal/subpath"
)

// caches points the package managers in use at private caches. A shared cache that a
// run could write would let it poison all later runs.
func (d *deriver) caches() {
	if d.p.Private == "" {
		return
	}
	w := d.p.Private
	offline := d.p.Net.Mode == NetNone || d.p.Net.Mode == NetLoopback
	for _, family := range d.in.Families {
		switch family {
		case "go":
			d.env("GOCACHE", w+"/go-build")
			host := d.goModCache()
			if build := d.cacheDir("GOCACHE", "go-build"); build != "" {
				d.overlay("go-build", build, map[string]string{"GOCACHE": build})
			}
			layers := len(d.p.Overlays)
			d.overlay("gomod", host, map[string]string{"GOMODCACHE": host, "GOPROXY": d.in.Getenv("GOPROXY")})
			if offline {
				// It notes there what it found out about the commit at hand, and warns if it cannot.
				d.p.Layered = len(d.p.Overlays) > layers
				d.optional(host, Read, "cache")
				if _, dir, err := d.in.Files.Resolve(host); err != nil || !dir {
					d.env("GOMODCACHE", w+"/gomod") // where an earlier run with network left what it fetched
				}
				continue
			}
			d.env("GOMODCACHE", w+"/gomod")
			if host != "" {
				d.optional(host, Read, "cache")
				old := d.in.Getenv("GOPROXY")
				if old == "" {
					old = "https://proxy.golang.org,direct"
				}
				d.env("GOPROXY", "file://"+host+"/cache/download,"+old)
			}
		case "npm":
			d.env("npm_config_cache", w+"/npm")
			// It asks for a newer npm at the end of whatever it did, and tries for a minute.
			d.env("npm_config_update_notifier", "false")
			if offline {
				d.env("npm_config_fetch_retries", "0")
			}
			cache := d.in.Getenv("npm_config_cache")
			if cache == "" && d.in.Home != "" {
				cache = d.in.Home + "/.npm"
			}
			if cache != "" {
				d.overlay("npm", cache+"/_cacache", map[string]string{"npm_config_cache": cache,
					"npm_config_logs_dir": w + "/npm-logs"})
			}
		case "pip":
			d.env("PIP_CACHE_DIR", w+"/pip")
			d.env("UV_CACHE_DIR", w+"/uv")
			if offline {
				d.env("PIP_RETRIES", "0")
			}
			for _, c := range [...][2]string{{"PIP_CACHE_DIR", "pip"}, {"UV_CACHE_DIR", "uv"}} {
				if dir := d.cacheDir(c[0], c[1]); dir != "" {
					d.overlay(c[1], dir, map[string]string{c[0]: dir})
				}
			}
		case "cargo":
			d.cargo()
		case "maven":
			d.maven()
		}
	}
}

// cargo has its caches beside settings, credentials and programs. So its home is one of the
// workspace, in which links lead to the host's caches where those are of use: in a private
// root, where a layer lies over them, and without network, where nothing can be fetched
// that would have to be written.
func (d *deriver) cargo() {
	own, linked := d.p.Private+"/cargo", d.p.Private+"/cargo-host"
	d.env("CARGO_HOME", own)
	host := d.in.Getenv("CARGO_HOME")
	if host == "" && d.in.Home != "" {
		host = d.in.Home + "/.cargo"
	}
	if rustup := d.in.Getenv("RUSTUP_HOME"); rustup != "" {
		d.optional(rustup+"/toolchains", d.rights(Read|Exec), "cache")
		d.optional(rustup+"/settings.toml", Read, "cache")
	}
	if host == "" {
		return
	}
	for _, name := range [...]string{"registry", "git"} {
		canonical, dir, err := d.in.Files.Resolve(host + "/" + name)
		if err != nil || !dir || d.tooWide(canonical) != "" || d.stray(host+"/"+name, canonical, dir, "cache") != "" {
			continue
		}
		d.optional(canonical, Read, "cache")
		d.p.Links = append(d.p.Links, link{Name: "cargo-host/" + name, Target: canonical})
		d.overlay("cargo-"+name, canonical, map[string]string{"CARGO_HOME": linked})
	}
	caches := len(d.p.Links) > 0
	for _, path := range d.in.CargoSettings {
		canonical, dir, err := d.in.Files.Resolve(path)
		if err != nil || dir || d.stray(path, canonical, dir, "cargo") != "" {
			continue
		}
		d.optional(canonical, Read, "cargo")
		// Below the directory that holds a .cargo cargo finds them by itself, and would
		// count them twice.
		if filepath.Base(host) != ".cargo" || !subpath.Within(d.p.Workspace, filepath.Dir(host)) {
			for _, home := range [...]string{"cargo/", "cargo-host/"} {
				d.p.Links = append(d.p.Links, link{Name: home + filepath.Base(path), Target: canonical})
			}
		}
	}
	if caches && (d.p.Net.Mode == NetNone || d.p.Net.Mode == NetLoopback) {
		d.env("CARGO_HOME", linked)
	}
}

// maven has its repository beside settings with passwords, and no variable of its own for
// it. Without network the host's can be read; with it, a run has its own.
func (d *deriver) maven() {
	host := ""
	if d.in.Home != "" {
		host = d.in.Home + "/.m2/repository"
	}
	_, dir, err := d.in.Files.Resolve(host)
	options := d.in.Getenv("MAVEN_OPTS")
	d.optional(host, Read, "cache")
	d.overlay("maven", host, map[string]string{"MAVEN_OPTS": options})
	offline := d.p.Net.Mode == NetNone || d.p.Net.Mode == NetLoopback
	if own := d.p.Private + "/maven"; (err != nil || !dir || !offline) && !strings.ContainsAny(own, " \t") {
		d.env("MAVEN_OPTS", strings.TrimLeft(options+" -Dmaven.repo.local="+own, " "))
	}
}

// cacheDir is where a tool keeps the user's cache: as the variable says, or under its
// name in the cache directory.
func (d *deriver) cacheDir(variable, name string) string {
	if dir := d.in.Getenv(variable); dir != "" {
		return dir
	}
	if dir := d.in.Getenv("XDG_CACHE_HOME"); dir != "" {
		return dir + "/" + name
	}
	if d.in.Home == "" {
		return ""
	}
	return d.in.Home + "/.cache/" + name
}

// goModCache is where go keeps the user's modules.
func (d *deriver) goModCache() string {
	if dir := d.in.Getenv("GOMODCACHE"); dir != "" {
		return dir
	}
	if dir := d.in.Getenv("GOPATH"); dir != "" {
		return dir + "/pkg/mod"
	}
	if d.in.Home == "" {
		return ""
	}
	return d.in.Home + "/go/pkg/mod"
}
