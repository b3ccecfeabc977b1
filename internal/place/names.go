package place

import "strings"

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
