package place

import (
	"path/filepath"
	"strings"
)

// secretsInHome are the places below the home directory that hold credentials.
var secretsInHome = [...]string{
	".ssh", ".aws", ".azure", ".gnupg", ".kube", ".config/gcloud", ".config/gh", ".docker/config.json", ".netrc", ".npmrc",
	".pypirc", ".git-credentials", ".vault-token", ".cargo/credentials", ".cargo/credentials.toml", ".config/git/credentials",
	".local/share/keyrings", ".password-store", ".config/op", "Library/Keychains",
	".pgpass", ".my.cnf", ".mylogin.cnf", ".s3cfg", ".boto", ".terraformrc", ".terraform.d/credentials.tfrc.json", ".m2/settings.xml", ".m2/settings-security.xml", ".gem/credentials",
	".composer/auth.json", ".config/composer/auth.json", ".config/rclone", ".config/hub", ".config/doctl", ".config/heroku", ".config/sops", ".config/helm/registry", ".config/containers/auth.json",
	".config/github-copilot", ".config/huggingface", ".huggingface/token", ".cache/huggingface/token", ".kaggle/kaggle.json", ".fly/config.yml", ".oci", ".config/stripe", ".config/wrangler", ".wrangler/config",
	".local/share/com.vercel.cli", ".databrickscfg", ".snowsql/config", ".age", ".minikube/ca.key", ".putty", ".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json",
	".bash_history", ".zsh_history", ".local/share/fish/fish_history", ".psql_history", ".mysql_history", ".rediscli_history", ".python_history", ".node_repl_history", ".sqlite_history",
	".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge",
	"Library/Application Support/Google/Chrome", "Library/Application Support/Firefox", "Library/Cookies",
}

func (w World) secret(t target) bool {
	abs := t.abs
	for _, name := range secretsInHome {
		if t.hitsHome(name, t.deep) {
			return true
		}
	}
	for _, p := range [...]string{"/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-", "/etc/ssl/private", "/etc/sudoers", "/etc/sudoers.d"} {
		if t.hits(p, t.deep) {
			return true
		}
	}
	if strings.HasPrefix(abs, "/proc/") && strings.HasSuffix(abs, "/environ") {
		return true
	}
	return secretName(filepath.Base(abs)) && !certificates(abs)
}

// secretName knows files that are secret wherever they lie.
func secretName(base string) bool {
	lower := strings.ToLower(base)
	if envFile(lower) {
		return true
	}
	switch lower {
	case "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519":
		return true
	}
	for _, suffix := range [...]string{".pem", ".key", ".kdbx", ".tfstate", ".tfstate.backup", ".p12", ".pfx", ".jks", ".keystore", ".ppk", ".ovpn"} {
		if strings.HasSuffix(lower, suffix) {
			return true
		}
	}
	return strings.HasPrefix(lower, "ssh_host_") && strings.HasSuffix(lower, "_key")
}

// envFile is ".env" and its variants, but not ".envrc", which is code, nor the
// examples that are meant to be committed.
func envFile(lower string) bool {
	rest, ok := strings.CutPrefix(lower, ".env")
	if !ok || (rest != "" && rest[0] >= 'a' && rest[0] <= 'z') {
		return false
	}
	for _, word := range [...]string{"example", "sample", "template"} {
		if strings.Contains(rest, word) {
			return false
		}
	}
	return true
}

// certificates are the public certificates every TLS client reads.
func certificates(abs string) bool {
	for _, dir := range [...]string{"/etc/ssl/certs", "/etc/pki", "/etc/ca-certificates", "/usr", "/System", "/nix/store"} {
		if within(abs, dir) {
			return !within(abs, "/etc/pki/tls/private") && !within(abs, "/usr/local/etc")
		}
	}
	return strings.HasSuffix(abs, "/certifi/cacert.pem")
}

// startupInHome run by themselves at login, at the start of a shell or editor, or
// with every git command.
var startupInHome = [...]string{
	".claude/shell-snapshots", // sourced unread before each command of that host
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
	".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".xprofile", ".xinitrc", ".xsession", ".pam_environment",
	".config/fish", ".config/nushell", ".config/environment.d", ".config/autostart", ".config/systemd", ".local/share/systemd",
	".gitconfig", ".config/git/config", ".config/git/hooks", ".vimrc", ".vim", ".config/nvim", ".emacs", ".emacs.d", ".pythonrc", ".tmux.conf",
	"Library/LaunchAgents",
}

func (w World) startup(t target) bool {
	abs := t.abs
	for _, name := range startupInHome {
		if t.hitsHome(name, t.deepEdit) {
			return true
		}
	}
	for _, p := range [...]string{"/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/bashrc", "/etc/zsh", "/etc/zshrc", "/etc/zshenv",
		"/etc/crontab", "/etc/anacrontab", "/var/spool/cron", "/etc/systemd", "/usr/lib/systemd", "/lib/systemd", "/usr/local/lib/systemd",
		"/etc/init.d", "/etc/rc.local", "/etc/ld.so.preload", "/etc/xdg/autostart", "/Library/LaunchAgents", "/Library/LaunchDaemons"} {
		if t.hits(p, t.deepEdit) {
			return true
		}
	}
	if strings.HasPrefix(abs, "/etc/cron.") {
		return true
	}
	for _, dir := range w.GitDirs {
		if within(abs, dir) && codeInGitDir(rel(abs, dir)) {
			return true
		}
	}
	base := filepath.Base(abs)
	switch base {
	case "authorized_keys", "authorized_keys2", ".envrc":
		return true
	}
	switch filepath.Base(filepath.Dir(abs)) {
	case ".git":
		if codeInGitDir(base) {
			return true
		}
	case ".vscode":
		if base == "tasks.json" || base == "settings.json" || base == "launch.json" || base == "mcp.json" {
			return true
		}
	}
	return hasComponents(abs, ".git", "hooks") || hasComponent(abs, ".idea")
}

// codeInGitDir knows what git runs or obeys in a git directory.
func codeInGitDir(name string) bool {
	return name == "config" || name == "config.worktree" || within(name, "hooks")
}
