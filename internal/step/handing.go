package step

import (
	"path/filepath"
	"slices"
	"strings"
)

// CommandTexts are the parts of a word that its tool may hand to a shell: all of it, what
// follows a sign for that, and texts between quotes or slashes.
func CommandTexts(w string) []string {
	if len(w) > MaxArg {
		return nil
	}
	out := append([]string{w}, Literals(w)...)
	for _, sign := range [...]string{"!", "shell ", "system ", "exec ", "spawn ", "e ", "|", "=", "/", ";", ","} {
		if _, rest, ok := strings.Cut(w, sign); ok {
			out = append(out, strings.TrimSpace(rest))
		}
	}
	if i := strings.LastIndexByte(w, '='); i >= 0 {
		out = append(out, w[i+1:])
	}
	if parts := strings.Split(w, "/"); len(parts) > 3 {
		out = append(out, strings.Join(parts[2:len(parts)-1], "/"))
	}
	return out
}

// HandKind is how a call names local files.
type HandKind uint8

const (
	HandsNothing HandKind = iota
	HandsLocally          // any word may be a file it reads
	HandsWords            // any positional word may be a local file
	handsMarked           // a file is marked: @FILE
)

// Handing says how a call names local files.
func Handing(s *Step) HandKind {
	switch s.Call.Tool {
	case "openssl", "ar":
		return HandsLocally
	case "git":
		if len(s.Call.Path) > 0 && s.Call.Path[0] == "hash-object" || slices.Contains(s.Argv, "--no-index") {
			return HandsLocally
		}
	case "aws", "gsutil", "gcloud", "rclone", "az", "scp", "sftp", "rsync", "docker", "podman", "kubectl", "helm":
		return HandsWords
	case "curl", "httpie", "http", "xh", "stripe", "nm", "readelf", "objdump", "objcopy", "strip", "size", "ranlib", "java", "javac":
		return handsMarked
	}
	if s.Call.Provenance.Channel == "none" {
		return HandsLocally // nobody knows what it does with its words
	}
	return HandsNothing
}

// Handed is the path in a word, "" if it cannot be one.
func Handed(kind HandKind, w, before string) (string, bool) {
	switch kind {
	case handsMarked:
		if (before == "-b" || before == "--cookie") && !strings.Contains(w, "=") {
			return w, true // a file of cookies
		}
		at := strings.IndexByte(w, '@')
		if form := strings.Index(w, "=<"); form >= 0 && (before == "-F" || before == "--form" || strings.HasPrefix(w, "-F") || strings.HasPrefix(w, "--form")) {
			path, _, _ := strings.Cut(w[form+2:], ";")
			return path, true
		}
		if encoded, value := encodedFile(w, before); encoded {
			return value, value != ""
		}
		if at < 0 || at > 0 && w[at-1] != '=' || at == 0 && before == "-u" {
			return "", false
		}
		path, _, _ := strings.Cut(w[at+1:], ";")
		return path, true
	case HandsWords:
		if name, rest, ok := strings.Cut(w, "="); ok && (strings.HasSuffix(name, "-file") || before == "--set-file") {
			return rest, true // kubectl get -o custom-columns-file=FILE
		}
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

// encodedFile is the file of curl's NAME@FILE, which stands for its encoded content.
func encodedFile(w, before string) (bool, string) {
	for _, option := range [...]string{"--data-urlencode", "--url-query"} {
		value, attached := strings.CutPrefix(w, option+"=")
		if before != option && !attached {
			continue
		}
		name, path, ok := strings.Cut(value, "@")
		return ok && !strings.Contains(name, "="), path
	}
	return false, ""
}

// Bridges reports a socat that puts a shell on a connection.
func Bridges(argv []string) bool {
	program, connection := false, false
	for _, w := range argv[1:] {
		kind, rest, _ := strings.Cut(strings.ToLower(w), ":")
		switch {
		case kind == "exec" || kind == "system" || kind == "shell":
			command, _, _ := strings.Cut(strings.Trim(rest, "'\""), ",")
			first, _, _ := strings.Cut(command, " ")
			program = program || IsShell(filepath.Base(first))
		case strings.HasPrefix(kind, "tcp"), strings.HasPrefix(kind, "udp"), strings.HasPrefix(kind, "openssl"), strings.HasPrefix(kind, "ssl"), strings.HasPrefix(kind, "sctp"), strings.HasPrefix(kind, "socks"), kind == "proxy":
			connection = true
		}
	}
	return program && connection
}
