package sandbox

import (
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	r := Receipt{Tier: T2, Write: []Grant{{"/w", true, Read | Write, ""}}, Read: []Grant{{"/usr", true, Read, ""}}}
	private := r
	private.Tier = T3
	closed := r
	closed.Exec = ExecClosed
	full := r
	full.Net.Mode = NetFull
	for _, tc := range []struct {
		name, stderr string
		exit         Exit
		r            Receipt
		class, path  string // "" for no hint
		g            Guarantee
	}{
		{"shell", "sh: 1: cannot create /home/u/.bashrc: Permission denied\n", Exit{Code: 2}, r, "files", "/home/u/.bashrc", FilesRead},
		{"shell by path", "/bin/bash: line 1: /home/u/x: Permission denied\n", Exit{Code: 1}, r, "files", "/home/u/x", FilesRead},
		{"script of dash", "/w/t.sh: 3: cannot create /home/u/x: Permission denied", Exit{Code: 2}, r, "files", "/home/u/x", FilesRead},
		{"script by descriptor", "/proc/self/fd/10: 3: cannot open /home/u/x: Permission denied", Exit{Code: 2}, r, "files", "/home/u/x", FilesRead},
		{"program by path", "/usr/bin/cp: cannot create regular file '/home/u/x': Permission denied", Exit{Code: 1}, r, "files", "/home/u/x", FilesRead},
		{"program by path, relative", "/usr/bin/cat: notes: Permission denied", Exit{Code: 1}, r, "files", "", FilesWrite},
		{"script of bash", "/w/t.sh: line 3: /home/u/x: Permission denied", Exit{Code: 1}, r, "files", "/home/u/x", FilesRead},
		{"private root", "/w/t.sh: 3: cannot create /home/u/d/x: Directory nonexistent", Exit{Code: 2}, private, "files", "/home/u/d/x", FilesRead},
		{"private root, bash", "bash: line 1: /home/u/d/x: No such file or directory", Exit{Code: 1}, private, "files", "/home/u/d/x", FilesRead},
		{"missing in the workspace", "cat: /w/x: No such file or directory", Exit{Code: 1}, private, "", "", ""},
		{"missing in /tmp", "cat: /tmp/x: No such file or directory", Exit{Code: 1}, private, "", "", ""},
		{"missing by name", "cat: x: No such file or directory", Exit{Code: 1}, private, "", "", ""},
		{"missing without a private root", "cat: /home/u/x: No such file or directory", Exit{Code: 1}, r, "", "", ""},
		{"python", "Traceback\nPermissionError: [Errno 13] Permission denied: '/usr/x y/z'\n", Exit{Code: 1}, r, "files", "/usr/x y/z", FilesWrite},
		{"go", "open /etc/shadow: permission denied", Exit{Code: 1}, r, "files", "/etc/shadow", FilesRead},
		{"node", "Error: EACCES: permission denied, open '/home/u/x'", Exit{Code: 1}, r, "files", "/home/u/x", FilesRead},
		{"no path", "error: permission denied", Exit{Code: 1}, r, "files", "", FilesWrite},
		{"granted path", "cat: /w/secret: Permission denied", Exit{Code: 1}, r, "", "", ""},
		{"curl", "curl: (6) Could not resolve host: example.com", Exit{Code: 6}, r, "network", "", NetGranted},
		{"socket", "OSError: [Errno 97] Address family not supported by protocol", Exit{Code: 1}, r, "network", "", NetGranted},
		{"with network", "curl: (6) Could not resolve host: example.com", Exit{Code: 6}, full, "", "", ""},
		{"ptrace", "strace: attach: ptrace(PTRACE_SEIZE, 1): Operation not permitted", Exit{Code: 1}, r, "kernel", "", Kernel},
		{"sudo", "sudo: The \"no new privileges\" flag is set, which prevents sudo from running as root.\nsudo: If sudo is running in a container, you may need to adjust the container configuration to disable the flag.", Exit{Code: 1}, r, "privilege", "", Privilege},
		{"sudo of root", "sudo: PERM_SUDOERS: setresuid(-1, 1, -1): Operation not permitted\nsudo: no valid sudoers sources found, quitting\nsudo: error initializing audit plugin sudoers_audit", Exit{Code: 1}, r, "privilege", "", Privilege},
		{"tar of root", "tar: f1: Cannot change ownership to uid 1, gid 1: Operation not permitted\ntar: Exiting with failure status due to previous errors", Exit{Code: 2}, r, "owner", "", Privilege},
		{"docker", "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: connect: permission denied", Exit{Code: 1}, r, "service", "", IPCUnix},
		{"docker in a private root", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", Exit{Code: 1}, r, "service", "", IPCUnix},
		{"signing", "fatal: cannot exec 'gpg': Permission denied\nerror: gpg failed to sign the data\nfatal: failed to write commit object", Exit{Code: 128}, closed, "signing", "", FilesRead},
		{"signing by ssh", "fatal: cannot exec 'ssh-keygen': Permission denied\nerror: \nfatal: failed to write commit object", Exit{Code: 128}, closed, "signing", "", FilesRead},
		{"32 bit", "", Exit{Code: 159, Signal: 31}, r, "kernel", "", Kernel},
		{"success", "warning: permission denied", Exit{}, r, "", "", ""},
		{"other failure", "error: no such file", Exit{Code: 1}, r, "", "", ""},
		{"start by a shell", "bash: line 1: /bin/rm: Permission denied", Exit{Code: 126}, closed, "starts", "/bin/rm", FilesRead},
		{"start by xargs", "xargs: rm: Permission denied", Exit{Code: 126}, closed, "starts", "", FilesRead},
		{"start by flock", "flock: failed to execute /bin/bash: Permission denied", Exit{Code: 69}, closed, "starts", "/bin/bash", FilesRead},
		{"file of a closed run", "cat: /home/u/x: Permission denied", Exit{Code: 1}, closed, "files", "/home/u/x", FilesRead},
		{"start where all may be started", "bash: line 1: /home/u/x: Permission denied", Exit{Code: 126}, r, "files", "/home/u/x", FilesRead},
		{"unconfined", "permission denied", Exit{Code: 1}, Receipt{}, "", "", ""},
		{"far back", "permission denied\n" + strings.Repeat("x\n", tailBytes), Exit{Code: 1}, r, "", "", ""},
	} {
		d, ok := Explain(tc.exit, []byte(tc.stderr), tc.r)
		if ok != (tc.class != "") || d.Class != tc.class && ok || d.Path != tc.path && ok || d.Guarantee != tc.g && ok {
			t.Errorf("%s: %v %+v", tc.name, ok, d)
		}
		if ok && (d.Certain || !strings.HasSuffix(d.String(), "[E4110]")) {
			t.Errorf("%s: %s", tc.name, d)
		}
	}
	if d, ok := Explain(Exit{Code: 1}, []byte("open '/a\x1b[2J': permission denied"), r); !ok || strings.Contains(d.String(), "\x1b") {
		t.Errorf("a terminal sequence of the child is repeated: %q", d)
	}
}

// FuzzExplain: whatever a child prints, the hint names only what stands in it.
func FuzzExplain(f *testing.F) {
	f.Add([]byte("open '/a b': permission denied"), 1)
	f.Add([]byte("`/x' EACCES /"), 2)
	f.Fuzz(func(t *testing.T, stderr []byte, code int) {
		d, ok := Explain(Exit{Code: code}, stderr, Receipt{Tier: T2})
		if ok && (code == 0 || !strings.Contains(string(stderr), d.Path)) {
			t.Errorf("%+v", d)
		}
	})
}
