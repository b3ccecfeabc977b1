package sandbox

// systemRead is readable and executable for every run; it holds programs,
// libraries and world-readable settings.
func systemRead() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu", "/snap"}
}

// systemData is readable for every run. Of /sys only what runtimes size themselves by.
func systemData() []string {
	return []string{"/proc", "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm",
		"/var/lib/dpkg", "/var/lib/rpm", "/var/lib/pacman", "/var/lib/alternatives", "/var/lib/ca-certificates",
		"/var/cache/fontconfig", "/var/cache/man"}
}

// settings is the directory whose names a run of root may list and of which it may read
// what rootEtc has.
const settings = "/etc"

// rootEtc stands in for /etc where the run has uid 0. Root owns shadow, sudoers, host
// keys and TLS keys, and Landlock cannot subtract, so what programs look up is
// granted name by name; a policy adds others.
func rootEtc() []string {
	return []string{"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "passwd", "group", "nsswitch.conf",
		"hosts", "hostname", "host.conf", "gai.conf", "resolv.conf", "services", "protocols", "localtime", "timezone",
		"os-release", "lsb-release", "debian_version", "redhat-release", "alpine-release", "ssl/certs",
		"ssl/openssl.cnf", "ssl/cert.pem", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust", "crypto-policies", "ca-certificates", "gitconfig",
		"gitattributes", "profile", "profile.d", "bash.bashrc", "bashrc", "inputrc", "terminfo", "mime.types", "magic",
		"locale.alias", "locale.conf", "python3", "python3.9", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14",
		"python3.15", "python3.16", "perl", "fonts", "shells", "vim", "nanorc", "emacs", "manpath.config", "man_db.conf",
		"java", "java-8-openjdk", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "java-25-openjdk", "maven",
		"php", "ImageMagick-6", "ImageMagick-7", "dpkg/dpkg.cfg", "dpkg/dpkg.cfg.d", "dpkg/origins", "apt/apt.conf", "apt/apt.conf.d",
		"apt/sources.list", "apt/sources.list.d", "apt/preferences.d", "ssh/ssh_config", "ssh/ssh_config.d", "ssh/ssh_known_hosts",
		"postgresql-common", "subversion", "mercurial", "wgetrc", "screenrc", "tmux.conf", "papersize", "machine-id", "login.defs", "xml", "sgml"}
}

// deviceNodes are open to every run. Other terminals are not: they are the user's.
func deviceNodes() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"}
}

// homeRead is all of the home directory that every run may read.
func homeRead() []string {
	return []string{".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes",
		".config/go/env", "go/pkg/mod"}
}

// sharedTemporary are directories in which other programs of the same user keep
// files: a grant on the directory itself would hand out all of them.
func sharedTemporary(path string) bool {
	switch path {
	case "/tmp", "/var/tmp", "/dev/shm", "/run", "/dev":
		return true
	}
	return false
}
