package place

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// Kind is what a name is. It decides the class of a path, and whether a run may change it.
type Kind uint8

// The kinds of names.
const (
	Secret  Kind = iota + 1 // holds credentials
	Startup                 // runs by itself: at login, in an editor, in a directory
	Agent                   // settings and instructions of a coding agent or an editor
	Hook                    // starts programs of a coding agent, so that it decides what judges later commands
	Git                     // git runs it or is redirected by it
	CI                      // a CI service runs it; counts only if the policy protects it
	Own                     // policy and metadata of this program
)

// Where says from where a name counts.
type Where uint8

// The places of names.
const (
	Home      Where = iota + 1 // below a home directory
	System                     // an absolute path
	Anywhere                   // in any directory
	Workspace                  // in any directory of the workspace
	GitDir                     // in a git directory
)

// Name is one row of the table: a name of files that no command may read or change unasked.
// The table is the only place that spells these names. Everything else takes them from here.
type Name struct {
	// Path is relative to where the name counts. A directory, which counts with all that lies
	// below it, ends in a slash. One star stands for any text.
	Path  string
	Where Where
	Kind  Kind
	// Unless takes out what the text of the star says.
	Unless     func(text string) bool
	Credential Credential
}

// Credential says how the values in a file are found, so that no output shows them. The zero
// value is a file whose values are not looked up.
type Credential struct {
	Source   string // names it where a value was redacted
	Format   Format
	Variable string // of the environment, which names another such file
}

// Format is how a credential file holds its values.
type Format string

// The formats of credential files.
const (
	Assignments Format = "assignments" // key = value, key: value
	Netrc       Format = "netrc"
	Docker      Format = "docker"
	URLs        Format = "urls" // https://user:password@host
	Pgpass      Format = "pgpass"
)

// kindSet is a set of kinds.
type kindSet uint8

func kinds(list ...Kind) kindSet {
	var s kindSet
	for _, k := range list {
		s |= 1 << k
	}
	return s
}

func (s kindSet) has(k Kind) bool { return s&(1<<k) != 0 }

// names is the table. It is data that the linker lays out: nothing is computed at the start.
var names = [...]Name{
	{Path: ".ssh/", Where: Home, Kind: Secret},
	{Path: ".ssh/id_ed25519", Where: Home, Kind: Secret},
	{Path: ".ssh/id_rsa", Where: Home, Kind: Secret},
	{Path: ".ssh/id_ecdsa", Where: Home, Kind: Secret},
	{Path: ".netrc", Where: Home, Kind: Secret, Credential: Credential{"netrc", Netrc, "NETRC"}},
	{Path: ".npmrc", Where: Home, Kind: Secret, Credential: Credential{"npmrc", Assignments, "NPM_CONFIG_USERCONFIG"}},
	{Path: ".pypirc", Where: Home, Kind: Secret, Credential: Credential{"pypirc", Assignments, ""}},
	{Path: ".git-credentials", Where: Home, Kind: Secret, Credential: Credential{"git-credentials", URLs, ""}},
	{Path: ".config/git/credentials", Where: Home, Kind: Secret, Credential: Credential{"git-credentials", URLs, ""}},
	{Path: ".vault-token", Where: Home, Kind: Secret},
	{Path: ".aws/", Where: Home, Kind: Secret},
	{Path: ".aws/credentials", Where: Home, Kind: Secret, Credential: Credential{"aws", Assignments, "AWS_SHARED_CREDENTIALS_FILE"}},
	{Path: ".docker/", Where: Home, Kind: Secret},
	{Path: ".docker/config.json", Where: Home, Kind: Secret, Credential: Credential{"docker", Docker, "DOCKER_CONFIG"}},
	{Path: ".kube/", Where: Home, Kind: Secret},
	{Path: ".kube/config", Where: Home, Kind: Secret, Credential: Credential{"kube", Assignments, "KUBECONFIG"}},
	{Path: ".config/gh/", Where: Home, Kind: Secret},
	{Path: ".config/gh/hosts.yml", Where: Home, Kind: Secret, Credential: Credential{"gh", Assignments, "GH_CONFIG_DIR"}},
	{Path: ".config/glab-cli/config.yml", Where: Home, Kind: Secret, Credential: Credential{"glab", Assignments, "GLAB_CONFIG_DIR"}},
	{Path: ".cargo/credentials", Where: Home, Kind: Secret},
	{Path: ".cargo/credentials.toml", Where: Home, Kind: Secret, Credential: Credential{"cargo", Assignments, ""}},
	{Path: ".pgpass", Where: Home, Kind: Secret, Credential: Credential{"pgpass", Pgpass, "PGPASSFILE"}},
	{Path: ".my.cnf", Where: Home, Kind: Secret, Credential: Credential{"mysql", Assignments, ""}},
	{Path: ".mylogin.cnf", Where: Home, Kind: Secret},
	{Path: ".terraformrc", Where: Home, Kind: Secret},
	{Path: ".terraform.d/credentials.tfrc.json", Where: Home, Kind: Secret, Credential: Credential{"terraform", Assignments, "TF_CLI_CONFIG_FILE"}},
	{Path: ".azure/", Where: Home, Kind: Secret},
	{Path: ".gnupg/", Where: Home, Kind: Secret},
	{Path: ".config/gcloud/", Where: Home, Kind: Secret},
	{Path: ".local/share/keyrings/", Where: Home, Kind: Secret},
	{Path: ".password-store/", Where: Home, Kind: Secret},
	{Path: ".config/op/", Where: Home, Kind: Secret},
	{Path: "Library/Keychains/", Where: Home, Kind: Secret},
	{Path: ".s3cfg", Where: Home, Kind: Secret},
	{Path: ".boto", Where: Home, Kind: Secret},
	{Path: ".m2/settings.xml", Where: Home, Kind: Secret},
	{Path: ".m2/settings-security.xml", Where: Home, Kind: Secret},
	{Path: ".gem/credentials", Where: Home, Kind: Secret},
	{Path: ".composer/auth.json", Where: Home, Kind: Secret},
	{Path: ".config/composer/auth.json", Where: Home, Kind: Secret},
	{Path: ".config/rclone/", Where: Home, Kind: Secret},
	{Path: ".config/hub", Where: Home, Kind: Secret},
	{Path: ".config/doctl/", Where: Home, Kind: Secret},
	{Path: ".config/heroku/", Where: Home, Kind: Secret},
	{Path: ".config/sops/", Where: Home, Kind: Secret},
	{Path: ".config/helm/registry/", Where: Home, Kind: Secret},
	{Path: ".config/containers/auth.json", Where: Home, Kind: Secret},
	{Path: ".config/github-copilot/", Where: Home, Kind: Secret},
	{Path: ".config/huggingface/", Where: Home, Kind: Secret},
	{Path: ".huggingface/token", Where: Home, Kind: Secret},
	{Path: ".cache/huggingface/token", Where: Home, Kind: Secret},
	{Path: ".kaggle/kaggle.json", Where: Home, Kind: Secret},
	{Path: ".fly/config.yml", Where: Home, Kind: Secret},
	{Path: ".oci/", Where: Home, Kind: Secret},
	{Path: ".config/stripe/", Where: Home, Kind: Secret},
	{Path: ".config/wrangler/", Where: Home, Kind: Secret},
	{Path: ".wrangler/config/", Where: Home, Kind: Secret},
	{Path: ".local/share/com.vercel.cli/", Where: Home, Kind: Secret},
	{Path: ".databrickscfg", Where: Home, Kind: Secret},
	{Path: ".snowsql/config", Where: Home, Kind: Secret},
	{Path: ".age/", Where: Home, Kind: Secret},
	{Path: ".minikube/ca.key", Where: Home, Kind: Secret},
	{Path: ".putty/", Where: Home, Kind: Secret},
	{Path: ".claude/.credentials.json", Where: Home, Kind: Secret},
	{Path: ".codex/auth.json", Where: Home, Kind: Secret},
	{Path: ".gemini/oauth_creds.json", Where: Home, Kind: Secret},
	{Path: ".bash_history", Where: Home, Kind: Secret},
	{Path: ".zsh_history", Where: Home, Kind: Secret},
	{Path: ".local/share/fish/fish_history", Where: Home, Kind: Secret},
	{Path: ".psql_history", Where: Home, Kind: Secret},
	{Path: ".mysql_history", Where: Home, Kind: Secret},
	{Path: ".rediscli_history", Where: Home, Kind: Secret},
	{Path: ".python_history", Where: Home, Kind: Secret},
	{Path: ".node_repl_history", Where: Home, Kind: Secret},
	{Path: ".sqlite_history", Where: Home, Kind: Secret},
	{Path: ".mozilla/", Where: Home, Kind: Secret},
	{Path: ".thunderbird/", Where: Home, Kind: Secret},
	{Path: ".config/google-chrome/", Where: Home, Kind: Secret},
	{Path: ".config/chromium/", Where: Home, Kind: Secret},
	{Path: ".config/BraveSoftware/", Where: Home, Kind: Secret},
	{Path: ".config/microsoft-edge/", Where: Home, Kind: Secret},
	{Path: "Library/Application Support/Google/Chrome/", Where: Home, Kind: Secret},
	{Path: "Library/Application Support/Firefox/", Where: Home, Kind: Secret},
	{Path: "Library/Cookies/", Where: Home, Kind: Secret},

	{Path: "/etc/shadow", Where: System, Kind: Secret},
	{Path: "/etc/shadow-", Where: System, Kind: Secret},
	{Path: "/etc/gshadow", Where: System, Kind: Secret},
	{Path: "/etc/gshadow-", Where: System, Kind: Secret},
	{Path: "/etc/sudoers", Where: System, Kind: Secret},
	{Path: "/etc/sudoers.d/", Where: System, Kind: Secret},
	{Path: "/etc/ssl/private/", Where: System, Kind: Secret},
	{Path: "/etc/pki/tls/private/", Where: System, Kind: Secret},
	{Path: "/etc/ssh/ssh_host_rsa_key", Where: System, Kind: Secret},
	{Path: "/etc/ssh/ssh_host_ecdsa_key", Where: System, Kind: Secret},
	{Path: "/etc/ssh/ssh_host_ed25519_key", Where: System, Kind: Secret},
	{Path: "/proc/*/environ", Where: System, Kind: Secret},

	{Path: ".env*", Where: Anywhere, Kind: Secret, Unless: notEnv},
	{Path: "id_rsa", Where: Anywhere, Kind: Secret},
	{Path: "id_dsa", Where: Anywhere, Kind: Secret},
	{Path: "id_ecdsa", Where: Anywhere, Kind: Secret},
	{Path: "id_ed25519", Where: Anywhere, Kind: Secret},
	{Path: "ssh_host_*_key", Where: Anywhere, Kind: Secret},
	{Path: "*.pem", Where: Anywhere, Kind: Secret},
	{Path: "*.key", Where: Anywhere, Kind: Secret},
	{Path: "*.kdbx", Where: Anywhere, Kind: Secret},
	{Path: "*.tfstate", Where: Anywhere, Kind: Secret},
	{Path: "*.tfstate.backup", Where: Anywhere, Kind: Secret},
	{Path: "*.p12", Where: Anywhere, Kind: Secret},
	{Path: "*.pfx", Where: Anywhere, Kind: Secret},
	{Path: "*.jks", Where: Anywhere, Kind: Secret},
	{Path: "*.keystore", Where: Anywhere, Kind: Secret},
	{Path: "*.ppk", Where: Anywhere, Kind: Secret},
	{Path: "*.ovpn", Where: Anywhere, Kind: Secret},

	{Path: snapshots, Where: Home, Kind: Startup},
	{Path: ".bashrc", Where: Home, Kind: Startup},
	{Path: ".bash_profile", Where: Home, Kind: Startup},
	{Path: ".bash_login", Where: Home, Kind: Startup},
	{Path: ".bash_logout", Where: Home, Kind: Startup},
	{Path: ".bash_aliases", Where: Home, Kind: Startup},
	{Path: ".profile", Where: Home, Kind: Startup},
	{Path: ".zshrc", Where: Home, Kind: Startup},
	{Path: ".zshenv", Where: Home, Kind: Startup},
	{Path: ".zprofile", Where: Home, Kind: Startup},
	{Path: ".zlogin", Where: Home, Kind: Startup},
	{Path: ".zlogout", Where: Home, Kind: Startup},
	{Path: ".kshrc", Where: Home, Kind: Startup},
	{Path: ".mkshrc", Where: Home, Kind: Startup},
	{Path: ".cshrc", Where: Home, Kind: Startup},
	{Path: ".tcshrc", Where: Home, Kind: Startup},
	{Path: ".login", Where: Home, Kind: Startup},
	{Path: ".logout", Where: Home, Kind: Startup},
	{Path: ".xprofile", Where: Home, Kind: Startup},
	{Path: ".xinitrc", Where: Home, Kind: Startup},
	{Path: ".xsession", Where: Home, Kind: Startup},
	{Path: ".pam_environment", Where: Home, Kind: Startup},
	{Path: ".config/fish/", Where: Home, Kind: Startup},
	{Path: ".config/nushell/", Where: Home, Kind: Startup},
	{Path: ".config/environment.d/", Where: Home, Kind: Startup},
	{Path: ".config/autostart/", Where: Home, Kind: Startup},
	{Path: ".config/systemd/", Where: Home, Kind: Startup},
	{Path: ".local/share/systemd/", Where: Home, Kind: Startup},
	{Path: ".gitconfig", Where: Home, Kind: Startup},
	{Path: ".config/git/config", Where: Home, Kind: Startup},
	{Path: ".config/git/hooks/", Where: Home, Kind: Startup},
	{Path: ".vimrc", Where: Home, Kind: Startup},
	{Path: ".vim/", Where: Home, Kind: Startup},
	{Path: ".config/nvim/", Where: Home, Kind: Startup},
	{Path: ".emacs", Where: Home, Kind: Startup},
	{Path: ".emacs.d/", Where: Home, Kind: Startup},
	{Path: ".pythonrc", Where: Home, Kind: Startup},
	{Path: ".tmux.conf", Where: Home, Kind: Startup},
	{Path: "Library/LaunchAgents/", Where: Home, Kind: Startup},

	{Path: "/etc/profile", Where: System, Kind: Startup},
	{Path: "/etc/profile.d/", Where: System, Kind: Startup},
	{Path: "/etc/bash.bashrc", Where: System, Kind: Startup},
	{Path: "/etc/bashrc", Where: System, Kind: Startup},
	{Path: "/etc/zsh/", Where: System, Kind: Startup},
	{Path: "/etc/zshrc", Where: System, Kind: Startup},
	{Path: "/etc/zshenv", Where: System, Kind: Startup},
	{Path: "/etc/crontab", Where: System, Kind: Startup},
	{Path: "/etc/anacrontab", Where: System, Kind: Startup},
	{Path: "/etc/cron.*", Where: System, Kind: Startup},
	{Path: "/var/spool/cron/", Where: System, Kind: Startup},
	{Path: "/etc/systemd/", Where: System, Kind: Startup},
	{Path: "/usr/lib/systemd/", Where: System, Kind: Startup},
	{Path: "/lib/systemd/", Where: System, Kind: Startup},
	{Path: "/usr/local/lib/systemd/", Where: System, Kind: Startup},
	{Path: "/etc/init.d/", Where: System, Kind: Startup},
	{Path: "/etc/rc.local", Where: System, Kind: Startup},
	{Path: "/etc/ld.so.preload", Where: System, Kind: Startup},
	{Path: "/etc/xdg/autostart/", Where: System, Kind: Startup},
	{Path: "/Library/LaunchAgents/", Where: System, Kind: Startup},
	{Path: "/Library/LaunchDaemons/", Where: System, Kind: Startup},

	{Path: OwnDir + "/", Where: Anywhere, Kind: Own},

	{Path: ".claude/", Where: Workspace, Kind: Agent},
	{Path: ".codex/", Where: Workspace, Kind: Agent},
	{Path: ".cursor/", Where: Workspace, Kind: Agent},
	{Path: ".gemini/", Where: Workspace, Kind: Agent},
	{Path: ".opencode/", Where: Workspace, Kind: Agent},
	{Path: ".windsurf/", Where: Workspace, Kind: Agent},
	{Path: ".qwen/", Where: Workspace, Kind: Agent},
	{Path: ".pi/", Where: Workspace, Kind: Agent},

	{Path: "authorized_keys", Where: Anywhere, Kind: Startup},
	{Path: "authorized_keys2", Where: Anywhere, Kind: Startup},
	{Path: ".envrc", Where: Anywhere, Kind: Startup},
	{Path: ".mise.toml", Where: Anywhere, Kind: Startup},
	{Path: ".vscode/settings.json", Where: Anywhere, Kind: Startup},
	{Path: ".vscode/tasks.json", Where: Anywhere, Kind: Startup},
	{Path: ".vscode/launch.json", Where: Anywhere, Kind: Startup},
	{Path: ".vscode/mcp.json", Where: Anywhere, Kind: Startup},
	{Path: ".idea/", Where: Anywhere, Kind: Startup},

	{Path: ".mcp.json", Where: Anywhere, Kind: Hook},
	{Path: ".claude/settings.json", Where: Anywhere, Kind: Hook},
	{Path: ".claude/settings.local.json", Where: Anywhere, Kind: Hook},
	{Path: ".claude/hooks/", Where: Anywhere, Kind: Hook},
	{Path: ".codex/config.toml", Where: Anywhere, Kind: Hook},
	{Path: ".codex/hooks.json", Where: Anywhere, Kind: Hook},
	{Path: ".cursor/hooks.json", Where: Anywhere, Kind: Hook},
	{Path: ".cursor/mcp.json", Where: Anywhere, Kind: Hook},
	{Path: ".gemini/settings.json", Where: Anywhere, Kind: Hook},
	{Path: "opencode.json", Where: Anywhere, Kind: Hook},
	{Path: ".opencode/plugin/", Where: Anywhere, Kind: Hook},
	{Path: ".opencode/plugins/", Where: Anywhere, Kind: Hook},
	{Path: "opencode/plugin/", Where: Anywhere, Kind: Hook},
	{Path: "opencode/plugins/", Where: Anywhere, Kind: Hook},
	{Path: ".windsurf/hooks.json", Where: Anywhere, Kind: Hook},
	{Path: "windsurf/hooks.json", Where: Anywhere, Kind: Hook},
	{Path: ".qwen/settings.json", Where: Anywhere, Kind: Hook},
	{Path: ".pi/settings.json", Where: Anywhere, Kind: Hook},
	{Path: ".pi/agent/settings.json", Where: Anywhere, Kind: Hook},
	{Path: ".github/hooks/", Where: Anywhere, Kind: Hook},
	{Path: ".copilot/hooks/", Where: Anywhere, Kind: Hook},

	{Path: "hooks/", Where: GitDir, Kind: Git},
	{Path: "config", Where: GitDir, Kind: Git},
	{Path: "config.worktree", Where: GitDir, Kind: Git},
	{Path: "commondir", Where: GitDir, Kind: Git},
	{Path: "gitdir", Where: GitDir, Kind: Git},
	{Path: "info/attributes", Where: GitDir, Kind: Git},

	{Path: ".github/workflows/", Where: Workspace, Kind: CI},
	{Path: ".github/actions/", Where: Workspace, Kind: CI},
	{Path: ".gitlab-ci.yml", Where: Workspace, Kind: CI},
	{Path: ".circleci/", Where: Workspace, Kind: CI},
	{Path: ".buildkite/", Where: Workspace, Kind: CI},
	{Path: "Jenkinsfile", Where: Workspace, Kind: CI},
}

// OwnDir is the directory of a project that holds its policy, locks and metadata.
const OwnDir = ".agent-tools"

// snapshots is sourced unread before each command of one host of agents.
const snapshots = ".claude/shell-snapshots/"

// notEnv is what follows ".env" in names of other files: ".envrc", which is code, and the
// examples that are meant to be committed.
func notEnv(rest string) bool {
	return rest != "" && rest[0] >= 'a' && rest[0] <= 'z' ||
		strings.Contains(rest, "example") || strings.Contains(rest, "sample") || strings.Contains(rest, "template")
}

func (w World) secret(t target) bool {
	return w.holds(t, Secret)
}

func (w World) startup(t target) bool {
	if w.holds(t, Startup) || w.inTree(t, kinds(Startup, Agent, CI)) {
		return true
	}
	for _, dir := range w.GitDirs {
		if subpath.Within(t.abs, dir) && codeInGitDir(rel(t.abs, dir)) {
			return true
		}
	}
	for rest := t.abs; rest != ""; {
		var c string
		if c, rest = cutComponent(rest); c != "" && c[0] == '.' && subpath.SameName(c, ".git") && (codeInGitDir(rest) || rest == "" && w.pointer(t)) {
			return true
		}
	}
	return false
}

// rows are the rows of the table by where they are looked for. Each path of each command is
// compared with them.
type rows struct {
	home   [Startup + 1][]string // by kind, without the slash at the end
	system [Startup + 1][]starred
	base   []starred // secrets by their last component
	tree   []*Name
	starts [256]bool // the first bytes of those
	git    []string
}

// starred is a name with its star taken apart.
type starred struct {
	before, after string
	star          bool
	unless        func(string) bool
}

var table = sync.OnceValue(func() *rows {
	r := &rows{}
	for i := range names {
		n := &names[i]
		path := strings.TrimSuffix(n.Path, "/")
		before, after, star := strings.Cut(path, "*")
		switch {
		case n.Where == Home:
			r.home[n.Kind] = append(r.home[n.Kind], path)
		case n.Where == System:
			r.system[n.Kind] = append(r.system[n.Kind], starred{before, after, star, nil})
		case n.Where == GitDir:
			r.git = append(r.git, n.Path)
		case n.Kind == Secret:
			r.base = append(r.base, starred{before, after, star, n.Unless})
		default:
			r.tree = append(r.tree, n)
			r.starts[n.Path[0]], r.starts[n.Path[0]^0x20] = true, true // in small letters and capitals
		}
	}
	return r
})

// holds reports whether t is, lies in or, as far as its access goes, holds a name of a home
// directory or of the system.
func (w World) holds(t target, kind Kind) bool {
	deep := t.deep && kind == Secret || t.deepEdit
	if t.inHome {
		for _, path := range table().home[kind] {
			if t.home != "" && t.home[0] != path[0] {
				continue
			}
			if t.hitsHome(path, deep) {
				return true
			}
		}
	}
	for i := range table().system[kind] {
		p := &table().system[kind][i]
		if len(t.abs) > 1 && t.abs[1] != p.before[1] {
			continue
		}
		if p.star && between(t.abs, p.before, p.after) || !p.star && t.hits(p.before, deep) {
			return true
		}
	}
	if kind != Secret {
		return false
	}
	base := strings.ToLower(filepath.Base(t.abs))
	for i := range table().base {
		if table().base[i].is(base) && !certificates(t.abs) && !publicPEM(base, t.abs) {
			return true
		}
	}
	return false
}

// between reports a path that begins and ends so. A name that is cut short is a beginning only.
func between(path, before, after string) bool {
	return len(path) >= len(before)+len(after) && strings.HasPrefix(path, before) && strings.HasSuffix(path, after)
}

// is reports whether the last component of a path, in small letters, is this name.
func (p *starred) is(base string) bool {
	if !p.star {
		return base == p.before
	}
	return between(base, p.before, p.after) && (p.unless == nil || !p.unless(base[len(p.before):len(base)-len(p.after)]))
}

// inTree reports whether t is, lies in or, if deep, holds a name that counts in any directory,
// or in any of the workspace. Names that differ in case are the same, as they are on the disk
// of a colleague or of a container's host.
func (w World) inTree(t target, wanted kindSet) bool {
	rows, inner := table(), len(t.abs)+1
	if w.Workspace != "" && subpath.Within(t.abs, w.Workspace) {
		inner = len(t.abs) - len(rel(t.abs, w.Workspace))
	}
	for at := 0; at < len(t.abs); at++ {
		if !rows.starts[t.abs[at]] || at > 0 && !os.IsPathSeparator(t.abs[at-1]) {
			continue
		}
		for _, n := range rows.tree {
			if !wanted.has(n.Kind) || n.Path[0]|0x20 != t.abs[at]|0x20 || n.Where != Anywhere && (n.Where != Workspace || at < inner) || n.Kind == CI && !w.CI {
				continue
			}
			if follows(t.abs[at:], n.Path, t.deepEdit) {
				return true
			}
		}
	}
	return false
}

// follows reports whether path begins with name, component by component. If deep, a path that
// ends on the way to name does as well.
func follows(path, name string, deep bool) bool {
	for name != "" {
		if path == "" {
			return deep
		}
		var a, b string
		a, path = cutComponent(path)
		if b, name = cutComponent(name); !subpath.SameName(a, b) {
			return false
		}
	}
	return true
}

// codeInGitDir knows what git runs or obeys in a git directory, and in those that it keeps
// there for submodules and work trees.
func codeInGitDir(name string) bool {
	first, _ := cutComponent(name)
	kept := subpath.SameName(first, "modules") || subpath.SameName(first, "worktrees")
	for name != "" {
		if slices.ContainsFunc(table().git, func(n string) bool { return follows(name, n, false) }) {
			return true
		}
		if !kept {
			return false
		}
		_, name = cutComponent(name)
	}
	return false
}

// pointer reports a file by which git finds a git directory elsewhere, whether it is there or
// about to be.
func (w World) pointer(t target) bool {
	return !t.deep && w.Workspace != "" && subpath.Within(t.abs, w.Workspace) && !isDir(t.abs)
}

// certificates are the public certificates every TLS client reads.
func certificates(abs string) bool {
	for _, dir := range [...]string{"/etc/ssl/certs", "/etc/pki", "/etc/ca-certificates", "/usr", "/System", "/nix/store"} {
		if subpath.Within(abs, dir) {
			return !subpath.Within(abs, "/usr/local/etc")
		}
	}
	return strings.HasSuffix(abs, "/certifi/cacert.pem")
}

// publicPEM reports a file of this name that is there and holds nothing but certificates and public keys (RFC
// 7468): the name alone does not tell them from private keys.
func publicPEM(base, abs string) bool {
	if filepath.Ext(base) != ".pem" {
		return false
	}
	raw, err := regular.ReadNoFollow(abs, 1<<20)
	if err != nil || bytes.Contains(bytes.ToUpper(raw), []byte("PRIVATE")) {
		return false
	}
	blocks := 0
	for {
		_, rest, found := bytes.Cut(raw, []byte("-----BEGIN "))
		if !found {
			return blocks > 0
		}
		label, _, closed := bytes.Cut(rest, []byte("-----"))
		switch string(label) {
		case "CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE", "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST", "X509 CRL", "PUBLIC KEY", "RSA PUBLIC KEY", "DH PARAMETERS", "EC PARAMETERS":
		default:
			return false
		}
		if !closed {
			return false
		}
		blocks, raw = blocks+1, rest
	}
}

// Bounds of the search for files of secrets in a workspace: every run pays for it.
const (
	maxSecretDirs    = 48
	maxSecretEntries = 2048
	maxSecretDepth   = 4
)

// FindSecrets lists the regular files of a workspace whose names are those of secrets, what lies
// near its top first. Directories that tools fill are left out.
func FindSecrets(workspace, cwd string, secret func(path string) bool) []string {
	if workspace == "" {
		return nil
	}
	var out []string
	queue, dirs, entries := []string{workspace}, 0, 0
	if cwd != workspace && subpath.Within(cwd, workspace) {
		for dir := cwd; dir != workspace && dir != "/"; dir = filepath.Dir(dir) {
			queue = append(queue, dir)
		}
	}
	seen := map[string]bool{}
	for len(queue) > 0 && dirs < maxSecretDirs && entries < maxSecretEntries {
		dir := queue[0]
		queue = queue[1:]
		if seen[dir] {
			continue
		}
		seen[dir] = true
		dirs++
		f, err := regular.OpenDir(dir)
		if err != nil {
			continue
		}
		list, _ := f.ReadDir(maxSecretEntries - entries)
		f.Close()
		entries += len(list)
		for _, e := range list {
			path := dir + "/" + e.Name()
			switch {
			case e.Type().IsRegular() && secret(path):
				out = append(out, path)
			case e.IsDir() && e.Name() != ".git" && !buildDir(e.Name()) && depthBelow(path, workspace) < maxSecretDepth:
				queue = append(queue, path)
			}
		}
	}
	return out
}

func depthBelow(path, top string) int {
	n := 0
	for ; path != top && path != "/"; path = filepath.Dir(path) {
		n++
	}
	return n
}

// MaxLinkSearch is how many names of a workspace are looked at for another name of a
// credential file.
const MaxLinkSearch = 8192

// SecretLinks looks for names in the workspace under which a credential file can be read: a
// hard link from before the run, as no run can make one. Hardly any credential file has a
// second name, so hardly any run searches. It looks at MaxLinkSearch names; cut says that there
// are more.
func SecretLinks(workspace, home string) (links []string, cut bool) {
	if workspace == "" || home == "" {
		return nil, false
	}
	wanted := map[[2]uint64]string{}
	for _, name := range CredentialFiles() {
		path := filepath.Join(home, name)
		if id, linked := linkedFile(path); linked && !subpath.Within(path, workspace) {
			wanted[id] = path
		}
	}
	if len(wanted) == 0 {
		return nil, false
	}
	seen := 0
	for level := []string{workspace}; len(level) > 0; {
		var next []string
		for _, dir := range level {
			f, err := regular.OpenDir(dir)
			if err != nil {
				continue
			}
			entries, _ := f.ReadDir(MaxLinkSearch - seen + 1)
			f.Close()
			for _, e := range entries {
				if seen++; seen > MaxLinkSearch {
					return links, true
				}
				path := filepath.Join(dir, e.Name())
				if e.IsDir() {
					next = append(next, path)
					continue
				}
				if !e.Type().IsRegular() {
					continue
				}
				if id, linked := linkedFile(path); linked && wanted[id] != "" {
					links = append(links, path)
				}
			}
		}
		level = next
	}
	return links, false
}

// Classify returns the first class in order that abs, with links resolved,
// belongs to. A recursive access also has the class of what lies below, as far as
// that is known without listing directories.
func (w World) Classify(abs string, access atip.Access, recursive bool) atip.Class {
	if !filepath.IsAbs(abs) {
		return atip.ClassUnknown
	}
	isRoot := w.root(abs, access)
	// To rename a directory is to take away all that lies in it.
	whole := recursive || access&atip.AccessDelete != 0 && isDir(abs)
	t := w.target(abs, access, whole && !isRoot)
	switch {
	case w.policySelf(t):
		return atip.ClassPolicySelf
	case device(abs):
		return atip.ClassDevice
	case w.secret(t):
		return atip.ClassSecret
	case w.startup(t):
		return atip.ClassStartup
	case isRoot:
		return atip.ClassRoot
	case w.Workspace != "" && subpath.Within(abs, w.Workspace):
		return w.workspace(abs)
	case w.ownGitDir(abs):
		return atip.ClassWorkspaceVCS
	case w.tmp(abs):
		if access&atip.AccessDelete != 0 && isDir(filepath.Join(abs, ".git")) {
			return atip.ClassOutside // a clone is work, wherever it lies
		}
		return atip.ClassTmp
	case system(abs):
		return atip.ClassSystem
	}
	return atip.ClassOutside
}

// Secret reports whether Classify would call a path that is read a secret, for whoever asks for nothing else.
func (w World) Secret(abs string) bool {
	t := w.target(abs, atip.AccessRead, false)
	return filepath.IsAbs(abs) && w.secret(t) && !w.policySelf(t) && !device(abs)
}

// target is a path under test. What lies below it counts too: for secrets if the
// access is recursive, for the rest only if it also changes something.
type target struct {
	abs      string
	inHome   bool
	home     string // abs relative to the home directory
	deep     bool
	deepEdit bool
}

func (w World) target(abs string, access atip.Access, deep bool) target {
	t := target{abs: abs, deep: deep, deepEdit: deep && access&(atip.AccessWrite|atip.AccessDelete) != 0}
	if t.inHome = w.Home != "" && subpath.Within(abs, w.Home); t.inHome {
		t.home = rel(abs, w.Home)
	} else if w.OtherHome != "" && subpath.Within(abs, w.OtherHome) {
		t.inHome, t.home = true, rel(abs, w.OtherHome)
	} else if home := otherHome(abs); home != "" {
		t.inHome, t.home = true, rel(abs, home)
	}
	return t
}

// otherHome is the home directory of somebody else that abs lies in, by custom.
func otherHome(abs string) string {
	if subpath.Within(abs, "/root") {
		return "/root"
	}
	for _, homes := range [...]string{"/home/", "/Users/"} {
		if rest, ok := strings.CutPrefix(abs, homes); ok {
			if user, _, below := strings.Cut(rest, "/"); below && user != "" {
				return homes + user
			}
		}
	}
	return ""
}

// hits reports whether t is p or below it or, if deep, above it.
func (t target) hits(p string, deep bool) bool {
	return subpath.Within(t.abs, p) || (deep && subpath.Within(p, t.abs))
}

// hitsHome is hits for a path relative to the home directory.
func (t target) hitsHome(p string, deep bool) bool {
	return t.inHome && (subpath.Within(t.home, p) || (deep && subpath.Within(p, t.home)))
}

func (w World) policySelf(t target) bool {
	for _, dir := range [...]string{w.Config, w.Data, w.State, w.Runtime, w.Managed} {
		if dir != "" && t.hits(dir, t.deepEdit) {
			return true
		}
	}
	return slices.ContainsFunc(w.Programs, func(p string) bool { return t.hits(p, t.deepEdit) }) || w.inTree(t, kinds(Own, Hook))
}

// Keeps reports a directory in or below which secrets or our own files lie, or are usual, so
// that it must not be opened as a whole: a home directory, what is above one, ~/.config, /etc,
// and directories of devices, among which are the user's other terminals.
func (w World) Keeps(dir string) bool {
	t := w.target(dir, atip.AccessRead, true)
	for _, own := range [...]string{w.Config, w.Data, w.State, w.Runtime, w.Home, w.OtherHome} {
		if own != "" && subpath.Within(own, dir) {
			return true
		}
	}
	switch parent := filepath.Dir(dir); {
	case dir == "/", dir == "/root", dir == "/home", dir == "/Users", dir == "/dev", device(dir), parent == "/home", parent == "/Users":
		return true
	}
	return w.secret(t)
}

// device is everything in /dev that is not a stream, randomness or memory.
func device(abs string) bool {
	name, ok := strings.CutPrefix(abs, "/dev/")
	if !ok {
		return false
	}
	name, _, _ = strings.Cut(name, "/")
	return !harmlessDevice(name) && name != "shm"
}

func harmlessDevice(name string) bool {
	switch name {
	case "null", "zero", "full", "random", "urandom", "tty", "stdin", "stdout", "stderr", "fd":
		return true
	}
	return false
}

// root is where a slip of the hand ends a machine or a home.
func (w World) root(abs string, access atip.Access) bool {
	parent := filepath.Dir(abs)
	switch {
	case parent == abs:
		return true
	case w.Workspace != "" && abs == w.Workspace:
		return access&atip.AccessDelete != 0
	case abs == w.Home, w.OtherHome != "" && abs == w.OtherHome, w.Home != "" && subpath.Within(w.Home, abs), w.Workspace != "" && subpath.Within(w.Workspace, abs):
		return true
	case filepath.Dir(parent) == parent:
		// "cp x /tmp" writes a file into it; only removing it is a disaster.
		return !w.tmp(abs) || access&atip.AccessDelete != 0
	}
	return false
}

func (w World) workspace(abs string) atip.Class {
	if hasComponent(rel(abs, w.Workspace), ".git") || hasComponent(rel(abs, w.Workspace), ".hg") ||
		hasComponent(rel(abs, w.Workspace), ".jj") || w.ownGitDir(abs) {
		return atip.ClassWorkspaceVCS
	}
	if w.Detail {
		return w.detail(abs)
	}
	return atip.ClassWorkspace
}

func (w World) ownGitDir(abs string) bool {
	return slices.ContainsFunc(w.GitDirs, func(dir string) bool { return subpath.Within(abs, dir) })
}

// tmp includes the streams of /dev: writing there leaves nothing behind.
func (w World) tmp(abs string) bool {
	if slices.ContainsFunc(w.TmpDirs, func(dir string) bool { return subpath.Within(abs, dir) }) {
		return true
	}
	if name, ok := strings.CutPrefix(abs, "/dev/"); ok {
		name, _, _ = strings.Cut(name, "/")
		return harmlessDevice(name) || name == "shm"
	}
	return subpath.Within(abs, "/tmp") || subpath.Within(abs, "/var/tmp") || subpath.Within(abs, "/private/tmp") || subpath.Within(abs, "/private/var/tmp")
}

func system(abs string) bool {
	top, _, _ := strings.Cut(strings.TrimPrefix(filepath.ToSlash(abs), "/"), "/")
	switch top {
	case "etc", "usr", "bin", "sbin", "boot", "opt", "var", "proc", "sys", "System", "Library":
		return true
	}
	return strings.HasPrefix(top, "lib")
}

func hasComponent(p, name string) bool {
	for p != "" {
		var c string
		if c, p = cutComponent(p); c == name {
			return true
		}
	}
	return false
}
