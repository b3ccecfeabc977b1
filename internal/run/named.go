package run

import (
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/policy"
)

// given looks at the words of tools that hand files over or take them in and whose
// metadata does not say which of their words are local files: naming a secret gives
// it out, naming a file that runs by itself replaces it. A word can only raise.
func (c *collector) given(s *step) {
	if s.Call.Tool == "socat" && bridges(s.argv) {
		c.edge(c.index(s), c.index(s), policy.SocketShell)
	}
	if s.Call.Tool == "find" {
		// To list where the secrets of a home lie is to ask for them.
		if _, path := c.sought(s); path != "" {
			r := atip.Resource{Kind: "path", Value: path, Access: atip.AccessRead, Why: "-name"}
			if c.place(c.plan.world, &r, join(s.Cwd, s.Call.Chdir)); !within(r.Abs, c.plan.Workspace) {
				s.Call.Resources = append(s.Call.Resources, r)
			}
		}
	}
	switch s.Call.Tool {
	case "sed":
		c.sedFiles(s)
	case "awk":
		c.awkFiles(s)
	}
	kind := handing(s)
	if kind == handsNothing || len(s.argv) < 2 {
		return
	}
	for i, w := range s.argv[1:] {
		before := s.argv[i]
		path, ok := handed(kind, w, before)
		if !ok || path == "" || strings.IndexByte(path, 0) >= 0 {
			continue
		}
		if s.Call.Tool == "openssl" && strings.HasSuffix(before, "out") && strings.HasPrefix(before, "-") {
			r := atip.Resource{Kind: "path", Value: path, Access: atip.AccessWrite, Why: before}
			c.place(c.plan.world, &r, join(s.Cwd, s.Call.Chdir))
			s.raise(r)
			s.Call.Resources = append(s.Call.Resources, r)
			continue
		}
		r := atip.Resource{Kind: "path", Value: path, Access: atip.AccessRead, Why: "named"}
		c.place(c.plan.world, &r, join(s.Cwd, s.Call.Chdir))
		switch r.Class {
		case atip.ClassSecret:
			s.raise(r)
			s.Call.Resources = append(s.Call.Resources, r)
			if kind != handsLocally && s.Call.Effects[atip.Network].Value != atip.No {
				// The tool may use its credentials, not give them away.
				at := c.index(s)
				c.edge(at, at, policy.SecretToNetwork)
			}
		case atip.ClassStartup, atip.ClassPolicySelf:
			if s.Call.Effects[atip.Write].Value == atip.No || w != s.argv[len(s.argv)-1] {
				continue
			}
			r.Access |= atip.AccessWrite
			s.raise(r)
			s.Call.Resources = append(s.Call.Resources, r)
		}
	}
}

type handKind uint8

const (
	handsNothing handKind = iota
	handsLocally          // any word may be a file it reads
	handsWords            // any positional word may be a local file
	handsMarked           // a file is marked: @FILE
)

// handing says how a call names local files.
func handing(s *step) handKind {
	switch s.Call.Tool {
	case "openssl":
		return handsLocally
	case "git":
		if len(s.Call.Path) > 0 && s.Call.Path[0] == "hash-object" || contains(s.argv, "--no-index") {
			return handsLocally
		}
	case "aws", "gsutil", "gcloud", "rclone", "az", "scp", "sftp", "rsync", "docker", "podman", "kubectl":
		return handsWords
	case "curl", "httpie", "http", "xh", "stripe":
		return handsMarked
	}
	return handsNothing
}

// handed is the path in a word, "" if it cannot be one.
func handed(kind handKind, w, before string) (string, bool) {
	switch kind {
	case handsMarked:
		at := strings.IndexByte(w, '@')
		if at < 0 || at > 0 && w[at-1] != '=' || at == 0 && before == "-u" {
			return "", false
		}
		path, _, _ := strings.Cut(w[at+1:], ";")
		return path, true
	case handsWords:
		if strings.HasPrefix(before, "-") && len(before) == 2 {
			return "", false // an identity, a configuration: the metadata knows options
		}
	}
	if rest, ok := strings.CutPrefix(w, "fileb://"); ok {
		return rest, true
	}
	w = strings.TrimPrefix(w, "file://")
	return w, !strings.HasPrefix(w, "-") && !strings.Contains(w, "://")
}

// bridges reports a socat that puts a shell on a connection.
func bridges(argv []string) bool {
	program, connection := false, false
	for _, w := range argv[1:] {
		kind, rest, _ := strings.Cut(strings.ToLower(w), ":")
		switch {
		case kind == "exec" || kind == "system" || kind == "shell":
			command, _, _ := strings.Cut(strings.Trim(rest, "'\""), ",")
			first, _, _ := strings.Cut(command, " ")
			program = program || isShell(filepath.Base(first))
		case strings.HasPrefix(kind, "tcp"), strings.HasPrefix(kind, "udp"), strings.HasPrefix(kind, "openssl"), strings.HasPrefix(kind, "ssl"), strings.HasPrefix(kind, "sctp"), strings.HasPrefix(kind, "socks"), kind == "proxy":
			connection = true
		}
	}
	return program && connection
}

// sedFiles adds the absolute paths that a sed script writes with its w command.
func (c *collector) sedFiles(s *step) {
	for _, w := range s.argv[1:] {
		_, path, ok := strings.Cut(w, "w /")
		if !ok || strings.HasPrefix(w, "/") || strings.IndexByte(w, 0) >= 0 {
			continue
		}
		path, _, _ = strings.Cut(path, "\n")
		r := atip.Resource{Kind: "path", Value: "/" + path, Access: atip.AccessWrite, Why: "w"}
		if c.place(c.plan.world, &r, join(s.Cwd, s.Call.Chdir)); s.Call.Effects[atip.Write].Value != atip.No && !harmlessFile(r.Value) {
			s.raise(r)
			s.Call.Resources = append(s.Call.Resources, r)
		}
	}
}

// awkFiles adds what an awk program names that runs by itself or is no common file, if
// it writes: which of its texts is the file is not read.
func (c *collector) awkFiles(s *step) {
	for _, w := range s.argv[1:] {
		if !strings.Contains(w, ">") || strings.IndexByte(w, 0) >= 0 {
			continue
		}
		for _, lit := range literals(w) {
			r := atip.Resource{Kind: "path", Value: lit, Access: atip.AccessWrite, Why: "print >"}
			if !strings.HasPrefix(lit, "/") || harmlessFile(lit) {
				continue
			}
			if c.place(c.plan.world, &r, join(s.Cwd, s.Call.Chdir)); r.Class == atip.ClassStartup || r.Class == atip.ClassDevice || r.Class == atip.ClassPolicySelf || r.Class == atip.ClassSecret {
				s.raise(r)
				s.Call.Resources = append(s.Call.Resources, r)
			}
		}
	}
}
