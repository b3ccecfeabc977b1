package plan

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// actedOn lists the files whose content a step that reaches other machines may send or apply:
// each word, or what follows one of "@<=," in it, that names a regular file, and the files that
// its tool reads by itself. What a push sends is no file; see sent.
func (p *Plan) actedOn(s *step.Step) []string {
	if s.Call.Effects[atip.Network].Value == atip.No {
		return nil
	}
	base := subpath.Join(s.Cwd, s.Call.Chdir)
	bases := []string{base}
	var out []string
	add := func(name string) {
		if name = strings.Trim(name, `"'`); name == "" || strings.IndexByte(name, 0) >= 0 {
			return
		}
		path := subpath.Join(base, name)
		info, err := os.Stat(path)
		switch {
		case err != nil || p.World.Classify(place.Resolve(path), atip.AccessRead, false) == atip.ClassSecret:
		case info.Mode().IsRegular():
			out = append(out, path)
		case info.IsDir():
			bases = append(bases, path) // of a build, or of a module
		}
	}
	for _, word := range s.Argv[1:] {
		add(word)
		for i, c := range word {
			if strings.ContainsRune("@=<,", c) {
				// curl -F 'f=@file;type=text/plain' and 'f=@one,two'
				name, _, _ := strings.Cut(word[i+1:], ";")
				add(name)
				name, _, _ = strings.Cut(name, ",")
				add(name)
			}
		}
		if strings.HasPrefix(word, "-") && len(word) > 2 {
			add(word[2:])
		}
	}
	var patterns []string
	switch s.Call.Tool {
	case "terraform", "tofu":
		patterns = []string{"*.tf", "*.tf.json", "*.tfvars", "*.tfvars.json"}
	case "docker", "podman", "docker-compose":
		patterns = []string{"Dockerfile", "Containerfile", "compose.y*ml", "docker-compose*.y*ml"}
	}
	for _, pattern := range patterns {
		for _, dir := range bases {
			found, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, path := range found {
				add(path)
			}
		}
	}
	return out
}
