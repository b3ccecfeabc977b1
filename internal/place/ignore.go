package place

import (
	"path/filepath"
	"strings"
)

// ignoredByGit decides as gitignore(5) does: the last pattern that matches wins,
// deeper files after shallower ones, and nothing below an ignored directory can
// be taken back.
func ignoredByGit(top string, gitDirs []string, home, name string, dir bool) bool {
	common := gitDirs[len(gitDirs)-1]
	var patterns []pattern
	if home != "" {
		patterns = append(patterns, readPatterns(join(home, ".config/git/ignore"), "")...)
	}
	patterns = append(patterns, readPatterns(join(common, "info/exclude"), "")...)
	for at, rest := "", name; ; {
		patterns = append(patterns, readPatterns(filepath.Join(top, at, ".gitignore"), at)...)
		var c string
		c, rest = cutComponent(rest)
		path := c
		if at != "" {
			path = at + "/" + c
		}
		if lastMatch(patterns, path, dir || rest != "") {
			return true
		}
		if rest == "" {
			return false
		}
		at = path
	}
}

type pattern struct {
	base    string // directory of the file it stands in
	glob    string
	negated bool
	dirOnly bool
	rooted  bool // matched against the path below base, not the last component
}

var ignoreFiles unchanged[[]pattern]

func readPatterns(file, base string) []pattern {
	patterns, _ := ignoreFiles.of(file, func(file string) (out []pattern) {
		text, err := smallFile(file)
		if err != nil {
			return nil
		}
		for line := range strings.SplitSeq(text, "\n") {
			if p, ok := parsePattern(strings.TrimSuffix(line, "\r"), base); ok {
				out = append(out, p)
			}
		}
		return out
	})
	return patterns
}

func parsePattern(line, base string) (p pattern, ok bool) {
	if strings.HasPrefix(line, "#") {
		return p, false
	}
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	p.base = base
	if strings.HasPrefix(line, "!") {
		p.negated, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		p.dirOnly, line = true, strings.TrimRight(line, "/")
	}
	if p.rooted = strings.Contains(line, "/"); p.rooted {
		line = strings.TrimPrefix(line, "/")
	}
	p.glob = line
	return p, line != ""
}

func lastMatch(patterns []pattern, path string, dir bool) bool {
	for i := len(patterns) - 1; i >= 0; i-- {
		if p := patterns[i]; p.matches(path, dir) {
			return !p.negated
		}
	}
	return false
}

func (p pattern) matches(path string, dir bool) bool {
	if p.dirOnly && !dir {
		return false
	}
	if p.base != "" {
		below, ok := strings.CutPrefix(path, p.base+"/")
		if !ok {
			return false
		}
		path = below
	}
	if !p.rooted {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	steps := 1 << 14
	return wildmatch(p.glob, path, &steps)
}

// wildmatch matches "*", "?", "[…]" within a component and "**" across them.
// steps bounds the backtracking of hostile patterns; without any left nothing
// matches, which classes a file as not regenerable.
func wildmatch(glob, s string, steps *int) bool {
	for glob != "" {
		if *steps--; *steps < 0 {
			return false
		}
		switch glob[0] {
		case '*':
			if rest, ok := strings.CutPrefix(glob, "**/"); ok {
				for {
					if wildmatch(rest, s, steps) {
						return true
					}
					i := strings.IndexByte(s, '/')
					if i < 0 {
						return false
					}
					s = s[i+1:]
				}
			}
			if glob == "**" {
				return true
			}
			for i := 0; ; i++ {
				if wildmatch(glob[1:], s[i:], steps) {
					return true
				}
				if i == len(s) || s[i] == '/' {
					return false
				}
			}
		case '?':
			if s == "" || s[0] == '/' {
				return false
			}
			glob, s = glob[1:], s[1:]
		case '[':
			in, rest, ok := class(glob, s)
			if !ok || !in {
				return false
			}
			glob, s = rest, s[1:]
		case '\\':
			if glob = glob[1:]; glob == "" {
				return false
			}
			fallthrough
		default:
			if s == "" || s[0] != glob[0] {
				return false
			}
			glob, s = glob[1:], s[1:]
		}
	}
	return s == ""
}

// class matches one byte against "[a-z]", "[!a]"; ok is false if it never closes.
func class(glob, s string) (in bool, rest string, ok bool) {
	i := 1
	negated := i < len(glob) && (glob[i] == '!' || glob[i] == '^')
	if negated {
		i++
	}
	for first := true; i < len(glob); first = false {
		c := glob[i]
		if c == ']' && !first {
			if s == "" || s[0] == '/' {
				return false, "", true
			}
			return in != negated, glob[i+1:], true
		}
		if c == '\\' && i+1 < len(glob) {
			i++
			c = glob[i]
		}
		hi := c
		if i+2 < len(glob) && glob[i+1] == '-' && glob[i+2] != ']' {
			hi = glob[i+2]
			i += 2
		}
		in = in || s != "" && c <= s[0] && s[0] <= hi
		i++
	}
	return false, "", false
}
