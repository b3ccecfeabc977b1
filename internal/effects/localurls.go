package effects

import (
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
)

// localURLs takes the network from a transfer all of whose URLs are files of this machine, which
// are paths like others. What else it might connect to, the run has no network for.
func localURLs(s *Step) {
	if s.Call.Tool != "curl" || s.Call.Effects[atip.Network].Value != atip.Yes || s.Call.Exactness != atip.Exact || len(s.Call.UnknownOptions) > 0 {
		return
	}
	local := false
	for _, r := range s.Call.Resources {
		if r.Kind != "url" {
			continue
		}
		path, file := strings.CutPrefix(r.Value, "file://")
		if !file || !filepath.IsAbs(path) || !plainPath(path) {
			return
		}
		local = true
	}
	if local {
		s.Call.Effects[atip.Network] = atip.Fact{Value: atip.No, Source: "url", Rank: atip.Vendor}
	}
}

// plainPath reports a path that says the same as a part of a URL: no encoding, no pattern of curl.
func plainPath(path string) bool {
	return strings.IndexFunc(path, func(r rune) bool {
		return r != '/' && r != '.' && r != '-' && r != '_' && r != '~' && r != '+' && r != '@' && r != ',' && r != ' ' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}
