package step

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/hostword"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/policy"
)

// SomeName stands for a name that only the run will know, in a path whose directory is
// known: "./…" is anything in or below the working directory.
const SomeName = "…"

// SomeBranch stands for such a name that is not that of a file.
const SomeBranch = SomeName + SomeName

// KnownDir is the directory of a path with SomeName up to where it is known, the path itself if
// all of it is.
func KnownDir(path string) string {
	before, _, hole := strings.Cut(path, SomeName)
	if !hole {
		return path
	}
	return filepath.Dir(before + "x")
}

// Means returns what tells the paths for which one with SomeName may stand. Letters of
// either case are the same, as `find -iname` takes them.
func Means(path string) func(string) bool {
	shape, err := regexp.Compile("(?is)^" + strings.ReplaceAll(regexp.QuoteMeta(path), SomeName, ".*") + "$")
	if err != nil {
		return func(string) bool { return true } // a name that is no UTF-8
	}
	return shape.MatchString
}

func HasHole(argv []string) bool {
	return slices.ContainsFunc(argv, func(w string) bool { return strings.IndexByte(w, 0) >= 0 })
}

// ParallelTexts are the commands that parallel makes of its own words, as in
// "parallel gzip {} ::: a b": one for each. Without ":::" they stand for lines of its input, if names does. It is
// nil if there may be others.
func ParallelTexts(s *Step, names []string) []string {
	at := slices.Index(s.Argv, ":::")
	if at < 0 {
		at = len(s.Argv)
	}
	if HasHole(s.Argv) || len(s.Call.UnknownOptions) > 0 || s.Call.Exactness != atip.Exact || len(s.Call.Positionals) == 0 {
		return nil
	}
	for _, o := range s.Call.Options {
		switch o.Name {
		case "jobs", "keep-order", "bar", "eta", "halt", "dry-run", "tag", "ungroup", "group", "no-run-if-empty", "retries", "progress", "verbose", "null":
		default:
			return nil
		}
	}
	command, args := s.Argv[len(s.Argv)-len(s.Call.Positionals):at:at], names
	if at < len(s.Argv) {
		args = s.Argv[at+1:]
	} else if len(command) == 0 {
		return nil // the lines are commands
	}
	template := strings.Join(command, " ")
	if len(args) == 0 || len(args) > 16 || slices.Contains(args, ":::") || slices.ContainsFunc(args, func(w string) bool { return strings.HasPrefix(w, "::::") || w == ":::+" }) {
		return nil
	}
	bare := strings.ReplaceAll(template, "{}", "")
	if strings.Contains(bare, "{") && len(command) > 0 {
		return nil // {.}, {/}, {1}
	}
	var out []string
	for _, a := range args {
		switch {
		case len(command) == 0:
			out = append(out, a)
		case bare != template:
			out = append(out, strings.ReplaceAll(template, "{}", quote.Literal(a)))
		default:
			out = append(out, template+" "+quote.Literal(a))
		}
	}
	return out
}

// TakesName reports a program text, or a command, in which a name that is not known
// stands: "xargs sh -c", "xargs env".
func TakesName(n atip.Nested) bool {
	return strings.Contains(n.Text, SomeName) || strings.Contains(n.File, SomeName) || slices.ContainsFunc(n.Argv, func(w string) bool { return strings.Contains(w, SomeName) })
}

// HasName reports whether one of these texts contains SomeName.
func HasName(texts []string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, SomeName) })
}

// StartsName reports a program, or a command, that is named by a name that is not known.
func StartsName(n atip.Nested) bool {
	return strings.Contains(n.File, SomeName) || slices.ContainsFunc(n.Argv, func(w string) bool { return strings.Contains(w, SomeName) })
}

// RunsNamed reports a file that is run whose name is not known, but for the directory that it lies in.
func RunsNamed(n atip.Nested) bool {
	return strings.Contains(n.File, SomeName) && !strings.Contains(n.Text, SomeName) && !slices.ContainsFunc(n.Argv, func(w string) bool { return strings.Contains(w, SomeName) })
}

// Reader reports tools that append the words they read to the command they run.
func Reader(tool string) bool { return tool == "xargs" || tool == "parallel" }

// Placeholder is what xargs -I replaces, "" if it appends.
func Placeholder(s *Step) string {
	for _, o := range s.Call.Options {
		if o.Name == "I" || o.Name == "replace" {
			return cmp.Or(o.Value, "{}")
		}
	}
	return ""
}

// PlainReader reports that xargs reads words as it does without options.
func PlainReader(s *Step) bool {
	for _, o := range s.Call.Options {
		switch o.Name {
		case "null", "delimiter", "E", "eof", "arg-file":
			return false
		}
	}
	return s.Call.Tool == "xargs"
}

// OpensSockets reports tools that connect a program to a socket.
func OpensSockets(tool string) bool {
	switch tool {
	case "nc", "ncat", "netcat", "socat":
		return true
	}
	return false
}

// Words splits text as xargs does: at white space, but for quotes.
func Words(s string) []string {
	var out []string
	var b strings.Builder
	open, quote := false, byte(0)
	for i := 0; i < len(s); i++ {
		ch := s[i]
		switch {
		case quote != 0:
			if ch == quote {
				quote = 0
			} else {
				b.WriteByte(ch)
			}
		case ch == '\'' || ch == '"':
			quote, open = ch, true
		case ch == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
			open = true
		case ch == ' ' || ch == '\t' || ch == '\n' || ch == 0:
			if open {
				out = append(out, b.String())
				b.Reset()
				open = false
			}
		default:
			b.WriteByte(ch)
			open = true
		}
	}
	if open {
		out = append(out, b.String())
	}
	return out
}

// MaxSpaced bounds how many names are looked at: such a command walks the tree itself.
const MaxSpaced = 4096

// Splits reports a name of which one part could be an option.
func Splits(name string) bool {
	for i := 1; i < len(name); i++ {
		if name[i] == '-' && strings.IndexByte(" \t\n\r\v\f", name[i-1]) >= 0 {
			return true
		}
	}
	return strings.ContainsAny(name, "'\"\\")
}

// findTest reports the words of find that only choose among what is found, and how many words
// each takes.
func findTest(word string) (words int, ok bool) {
	switch word {
	case "-daystart", "-depth", "-d", "-follow", "-nowarn", "-warn", "-mount", "-noleaf", "-xdev", "-ignore_readdir_race", "-noignore_readdir_race",
		"-empty", "-false", "-nouser", "-nogroup", "-readable", "-writable", "-executable", "-true", "-print", "-print0", "-ls", "-prune", "-quit",
		"-a", "-and", "(", ")":
		return 0, true
	case "-amin", "-anewer", "-atime", "-cmin", "-cnewer", "-context", "-ctime", "-fstype", "-gid", "-group", "-ilname", "-inum", "-ipath",
		"-iregex", "-iwholename", "-links", "-lname", "-maxdepth", "-mindepth", "-mmin", "-mtime", "-newer", "-newermt", "-newerct", "-newerat",
		"-path", "-perm", "-printf", "-regex", "-regextype", "-samefile", "-size", "-type", "-uid", "-used", "-user", "-wholename", "-xtype",
		"-fprint", "-fprint0", "-fls":
		return 1, true
	case "-fprintf":
		return 2, true
	}
	return 0, false
}

// Sieve reads the expression of find as far as it says what everything that is found
// is called: names stand for that, nil if it may be called anything. Where find would
// also hand over the starting point itself, nothing is said.
func Sieve(argv []string) (starts, names []string, ok bool) {
	i := 1
	for ; i < len(argv) && (argv[i] == "-H" || argv[i] == "-L" || argv[i] == "-P"); i++ {
	}
	for ; i < len(argv) && !strings.HasPrefix(argv[i], "-") && argv[i] != "(" && argv[i] != "!"; i++ {
		starts = append(starts, argv[i])
	}
	if len(starts) == 0 {
		starts = []string{"."}
	}
	named := false // in this part, between two -o
	for ; i < len(argv); i++ {
		w := argv[i]
		words, test := findTest(w)
		not := w == "!" || w == "-not"
		if not && i+1 < len(argv) {
			i++
			w = argv[i]
			// The opposite of a group, or of an opposite, may be anything.
			if words, test = findTest(w); w == "(" {
				return starts, nil, true
			}
		}
		switch {
		case w == ",":
			return starts, nil, false
		case test:
			i += words
		case w == "-o" || w == "-or":
			if !named {
				return starts, nil, true
			}
			named = false
		case w == "-name" || w == "-iname":
			if i++; not || i == len(argv) {
				continue
			}
			pattern := argv[i]
			one := strings.NewReplacer("*", SomeName, "?", SomeName).Replace(pattern)
			if strings.ContainsAny(pattern, "[\\/\x00") || one == "" {
				return starts, nil, true
			}
			for _, start := range starts {
				if hit, err := filepath.Match(strings.ToLower(pattern), strings.ToLower(filepath.Base(start))); hit || err != nil {
					return starts, nil, true
				}
			}
			if w == "-iname" && !strings.Contains(one, SomeName) {
				one += SomeName // not this name alone
			}
			named, names = true, append(names, one, SomeName+"/"+one)
		case strings.HasPrefix(w, "-exec") || strings.HasPrefix(w, "-ok"):
			if !named {
				return starts, nil, true
			}
			for i++; i < len(argv) && argv[i] != ";" && (argv[i] != "+" || argv[i-1] != "{}"); i++ {
			}
		case w == "-delete":
			if !named {
				return starts, nil, true
			}
		default:
			return starts, nil, true
		}
	}
	if !named {
		return starts, nil, true
	}
	return starts, names, true
}

// FoundAs is what find calls a name below one of its starting points.
func FoundAs(start, name string) string { return strings.TrimSuffix(start, "/") + "/" + name }

// LoginArgv puts the PATH of the run in front of the text of a login shell. Its start-up files set
// another: the system's those of a bare system, and the user's, which add to it, may hold
// credentials and are not read. So `bash -lc` would find other programs than were judged, or none.
// starts are the commands of the call, among them those that a wrapper (timeout, env, nice) starts.
func LoginArgv(argv, env []string, starts ...[]string) []string {
	at := loginText(argv)
	for i := 1; i < len(argv) && at < 0; i++ {
		known := func(start []string) bool {
			return len(start) > 0 && slices.Equal(start, argv[i:min(i+len(start), len(argv))])
		}
		if slices.ContainsFunc(starts, known) {
			if in := loginText(argv[i:]); in >= 0 {
				at = i + in
			}
		}
	}
	if at < 0 {
		return argv
	}
	for _, entry := range env {
		path, ok := strings.CutPrefix(entry, "PATH=")
		if prefix := "PATH=" + quote.Literal(path) + "; "; ok && len(prefix)+len(argv[at]) < MaxArg {
			out := append([]string(nil), argv...)
			out[at] = prefix + argv[at]
			return out
		}
	}
	return argv
}

// loginText is the place of the text that a login shell is given, -1 for any other command.
func loginText(argv []string) int {
	if len(argv) == 0 {
		return -1
	}
	switch filepath.Base(argv[0]) {
	case "bash", "sh", "dash", "ash", "zsh", "ksh", "mksh":
	default:
		return -1
	}
	login, text, i := false, false, 1
	for ; i < len(argv); i++ {
		w := argv[i]
		if strings.HasPrefix(w, "--") && w != "--" || LongOption(w) {
			name := strings.TrimLeft(w, "-")
			login = login || name == "login"
			if name == "rcfile" || name == "init-file" {
				i++
			}
			continue
		}
		if len(w) < 2 || w[0] != '-' && w[0] != '+' || w == "--" {
			break
		}
		login, text = login || w[0] == '-' && strings.Contains(w, "l"), text || strings.Contains(w, "c")
		i += strings.Count(w, "o") + strings.Count(w, "O")
	}
	if i < len(argv) && argv[i] == "--" {
		i++
	}
	if !login || !text || i >= len(argv) {
		return -1
	}
	return i
}

// Socket is the host of bash's /dev/tcp/HOST/PORT.
func Socket(path string) (policy.HostUse, bool) {
	for _, prefix := range [...]string{"/dev/tcp/", "/dev/udp/"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			host, port, _ := strings.Cut(rest, "/")
			if strings.IndexByte(host, 0) >= 0 {
				return policy.HostUse{}, true
			}
			_, n := SplitPort("h:" + port)
			return policy.HostUseOf(host, n), true
		}
	}
	return policy.HostUse{}, false
}

// RemoteWords are the words of a step that name remotes; ok is false for a command that talks to
// none, or to the URL in its words only.
func RemoteWords(s *Step) (names []string, push, ok bool) {
	path := s.Call.Path
	if len(path) == 0 {
		return nil, false, false
	}
	words := s.Call.Positionals
	verb := path[len(path)-1]
	switch path[0] {
	case "fetch", "pull", "push", "ls-remote":
		if len(path) > 1 {
			return nil, false, false
		}
		push = verb == "push"
		for _, o := range s.Call.Options {
			if o.Flag == "--repo" && o.Value != "" {
				names = append(names, o.Value)
			}
			if o.Flag == "--multiple" {
				for _, w := range words {
					names = append(names, w.Value)
				}
				return names, push, true
			}
		}
	case "remote":
		if !slices.Contains([]string{"show", "prune", "update", "set-head"}, verb) {
			return nil, false, false
		}
	case "lfs":
		if !slices.Contains([]string{"fetch", "pull", "push"}, verb) {
			return nil, false, false
		}
		push = verb == "push"
	default:
		return nil, false, false
	}
	if len(words) > 0 {
		names = []string{words[0].Value}
	}
	return names, push, true
}

// LocalPath reports a repository of this machine: no scheme but file, and no host in front of a
// colon (connect.c, url_is_local_not_ssh).
func LocalPath(url string) bool {
	if strings.HasPrefix(url, "file://") {
		return true
	}
	colon, slash := strings.IndexByte(url, ':'), strings.IndexByte(url, '/')
	return colon < 0 || slash >= 0 && slash < colon
}

// WithoutUser leaves out user and password of a URL, which people are not shown.
func WithoutUser(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	authority, path, slash := strings.Cut(rest, "/")
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	if slash {
		authority += "/"
	}
	return scheme + "://" + authority + path
}

// LocalURLs takes the network from a transfer all of whose URLs are files of this machine, which
// are paths like others. What else it might connect to, the run has no network for.
func LocalURLs(s *Step) {
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

// Hosts says whom a step may talk to, as far as its words tell. configured says that it talks to
// remotes of a configuration, whose hosts are known already.
func Hosts(s *Step, configured bool) []policy.HostUse {
	var out []policy.HostUse
	for _, r := range s.Call.Resources {
		if strings.HasPrefix(r.Why, "remote ") {
			continue
		}
		if s.Call.Tool == "git" && r.Kind == "url" && r.Scheme == "" && !strings.ContainsAny(r.Value, ":/") && len(hostword.In("", r.Value)) == 0 {
			continue // the name of a remote
		}
		if (r.Kind == "url" || r.Kind == "host") && r.Host != "" && r.Scheme != "file" {
			out = append(out, policy.HostUseOf(r.Host, portOf(s.Call.Tool, r)))
		}
	}
	named := len(out) > 0
	if s.Call.Effects[atip.Network].Value == atip.No {
		return out
	}
	for _, h := range looseHosts(s) {
		named = named || policy.GenericClient(s.Call.Tool)
		if !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	if named || configured {
		return out // a client that is told where to go
	}
	switch {
	case s.Call.Tool == "redis-cli" || s.Call.Tool == "mongosh":
		out = append(out, policy.HostUseOf("localhost", 0))
	case s.Call.Tool == "git" && s.Call.Effects[atip.Network].Value == atip.Yes:
		// Without a URL git talks to a remote of its configuration, whose URLs the
		// check of .git/config has seen.
		out = append(out, policy.HostUse{Kind: policy.HostNamed})
	case s.Call.Provenance.Rank >= atip.Org && s.Call.Effects[atip.Network].Value == atip.Yes:
		out = append(out, policy.HostUse{Kind: policy.HostService}) // beside the hosts in its words
	}
	return out
}

// looseHosts are the hosts in words whose meaning no document states. A tool that has the
// network may connect to any of them.
func looseHosts(s *Step) []policy.HostUse {
	var out []policy.HostUse
	for _, l := range s.Call.Loose {
		found := hostword.In(l.Name, l.Value)
		switch s.Call.Tool {
		case "scp", "sftp", "rsync":
			if h, ok := hostword.Remote(l.Value); ok && strings.HasPrefix(l.Why, "argv[") {
				found = []hostword.Host{h}
			}
		}
		for _, h := range found {
			port := h.Port
			if port == 0 {
				port = SchemePort(h.Scheme)
			}
			use := policy.HostUseOf(h.Name, port)
			if use.Kind == policy.HostPublic && slices.Contains(s.Call.Service, use.Host) {
				continue
			}
			out = append(out, use)
		}
	}
	return out
}

// ReadURLs treats a URL of another machine as a host where its document expects a file: the tool would fetch it. The
// value of an option that the document does not know may be plain text, and is left alone.
func ReadURLs(s *Step) {
	for i := range s.Call.Resources {
		r := &s.Call.Resources[i]
		at := slices.Index(s.Argv, r.Value)
		if r.Kind != "path" || at < 1 || strings.HasPrefix(s.Argv[at-1], "-") {
			continue
		}
		for _, h := range hostword.In("", r.Value) {
			if h.Scheme != "" && h.Scheme != "file" && policy.HostUseOf(h.Name, h.Port).Kind != policy.HostLoopback {
				r.Kind, r.Host, r.Scheme = "url", h.Name, h.Scheme
				s.Call.Effects[atip.Network] = atip.Fact{Value: atip.Yes, Source: r.Why, Rank: atip.Vendor}
			}
		}
	}
}

// Recurses reports a call of git that goes into submodules whatever its settings say.
func Recurses(s *Step) bool {
	return slices.Contains(s.Call.Path, "submodule") || slices.ContainsFunc(s.Argv, func(w string) bool {
		return strings.HasPrefix(w, "--recurs") || strings.HasPrefix(w, "--remote-sub") || strings.IndexByte(w, 0) >= 0
	})
}

// portOf is the port that a resource names or its scheme means, 0 if neither does.
func portOf(tool string, r atip.Resource) int {
	scp := r.Scheme == "" && overSSH(tool)
	if port := UrlPort(r.Value); !scp && port > 0 && port < 1<<16 {
		return port
	}
	if port := SchemePort(r.Scheme); port != 0 || !scp {
		return port
	}
	return 22
}

// SchemePort is the port that a scheme means, 0 if none is known.
func SchemePort(scheme string) int {
	switch scheme {
	case "https", "wss", "git+https":
		return 443
	case "http", "ws":
		return 80
	case "ssh", "git+ssh", "sftp", "scp":
		return 22
	case "ftp":
		return 21
	case "git":
		return 9418
	case "postgres", "postgresql":
		return 5432
	case "mysql":
		return 3306
	case "redis":
		return 6379
	}
	return 0
}

// overSSH names the tools that take "host:path" for a host to reach by ssh.
func overSSH(tool string) bool {
	switch tool {
	case "ssh", "scp", "sftp", "rsync", "git", "mosh", "ssh-copy-id", "ssh-keyscan":
		return true
	}
	return false
}

// UrlPort is the port that a URL names, also one without a scheme; 0 if none.
func UrlPort(value string) int {
	if _, rest, ok := strings.Cut(value, "://"); ok {
		value = rest
	}
	if i := strings.IndexAny(value, "/?#"); i >= 0 {
		value = value[:i]
	}
	if i := strings.LastIndexByte(value, '@'); i >= 0 {
		value = value[i+1:]
	}
	_, port := SplitPort(value)
	return port
}

func SplitPort(host string) (string, int) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.HasSuffix(host, "]") || strings.Count(host, ":") > 1 && !strings.Contains(host, "]:") {
		return host, 0
	}
	port := 0
	if _, err := fmt.Sscanf(host[i+1:], "%d", &port); err != nil {
		return host, 0
	}
	return host[:i], port
}

// BinName reports a command of a package as npx looks for it: a scope or a version makes it a
// package.
func BinName(name string) bool {
	return name != "" && !strings.ContainsRune("._-", rune(name[0])) && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// SQLiteWords are the words of sqlite3 with what it reads as one of them, where that is SQL alone, without commands of
// its shell, and no word is the value of an option.
func SQLiteWords(words []string, input string) []string {
	if len(words) < 2 {
		return words // what it reads would stand where the name of the database does
	}
	for i, w := range words[1:] {
		if last := i == len(words)-2; last == strings.HasPrefix(w, "-") {
			return words
		}
	}
	for line := range strings.Lines(input) {
		if strings.HasPrefix(strings.TrimSpace(line), ".") {
			return words
		}
	}
	return append(slices.Clip(words), input)
}
