package step

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
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

// Manages adds what the scripts do that a framework puts into each project, as far as
// their words are the same everywhere: they run as code of the workspace, but they are
// also the short way to an empty database.
func Manages(s *Step) {
	for i := 0; i+1 < len(s.Argv); i++ {
		if i > 0 && s.Call.Tool != "python" && s.Call.Tool != "php" {
			return
		}
		if resets(filepath.Base(s.Argv[i]), s.Argv[i+1]) || shells(filepath.Base(s.Argv[i]), s.Argv[i+1]) && slices.ContainsFunc(s.Argv[i+2:], empties) {
			s.Call.Effects[atip.Destructive] = atip.Fact{Value: atip.Yes, Source: "script " + s.Argv[i], Rank: atip.Vendor}
		}
	}
}

func resets(script, word string) bool {
	switch script {
	case "manage.py": // Django
		return word == "flush" || word == "reset_db" || word == "reset_schema"
	case "artisan": // Laravel
		return word == "migrate:fresh" || word == "migrate:refresh" || word == "migrate:reset" || word == "db:wipe"
	case "console": // Symfony
		return word == "doctrine:database:drop" || word == "doctrine:schema:drop"
	}
	return false
}

// shells reports the verb that runs program text with the models of a project.
func shells(script, word string) bool {
	return script == "artisan" && word == "tinker" || script == "manage.py" && (word == "shell" || word == "shell_plus")
}

// empties reports program text with a call that removes rows or tables. Text that does
// so in another way is what any code of the workspace may do.
func empties(text string) bool {
	for _, sign := range [...]string{"truncate(", "::destroy(", "->delete(", ".delete(", "forceDelete(", "deleteAll(", "delete_all", "drop_all", "dropAllTables", "dropIfExists", "DROP ", "drop table", "TRUNCATE "} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}
