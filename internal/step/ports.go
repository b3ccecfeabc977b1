package step

import (
	"fmt"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
)

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
