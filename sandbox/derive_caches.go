package sandbox

// caches points the package managers in use at private caches. A shared cache that a
// run could write would let it poison all later runs.
func (d *deriver) caches() {
	if d.p.Private == "" {
		return
	}
	w := d.p.Private
	for _, family := range d.in.Families {
		switch family {
		case "go":
			d.env("GOCACHE", w+"/go-build")
			host := d.goModCache()
			if d.p.Net.Mode == NetNone || d.p.Net.Mode == NetLoopback {
				d.optional(host, Read, "cache")
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
		case "pip":
			d.env("PIP_CACHE_DIR", w+"/pip")
			d.env("UV_CACHE_DIR", w+"/uv")
		case "cargo":
			d.env("CARGO_HOME", w+"/cargo")
			if d.in.Home != "" {
				d.optional(d.in.Home+"/.cargo/registry", Read, "cache")
				d.optional(d.in.Home+"/.cargo/git", Read, "cache")
				d.optional(d.in.Home+"/.rustup/toolchains", d.rights(Read|Exec), "cache")
			}
		}
	}
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
