package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

// interpreter is python3 or node as a version manager installs it: in a home
// directory, bound to built-in metadata by name only, nothing stated about code.
func interpreter(words string, code CodeKind) Step {
	st := tool(words).lowRank().code(code)
	for e := range st.Call.Effects {
		st.Call.Effects[e].Value = atip.Unknown
	}
	st.Call.Path = nil
	st.File = FileFacts{Canonical: "/home/u/.pyenv/versions/3.12/bin/python3", Place: "/home/u/.pyenv/shims/python3"}
	return st
}

type builtinRow struct {
	name string
	step Step
	full Action // with confinement
	bare Action // without
	rule string // some rule of the decision under confinement
}

func builtinRows() []builtinRow {
	ws := testWorkspace
	return []builtinRow{
		{"true", tool("true"), Allow, Allow, "builtin/read"},
		{"echo", tool("echo rm -rf /"), Allow, Allow, "builtin/read"},
		{"cat README", tool("cat README.md").on("read:workspace-tracked:" + ws + "/README.md"), Allow, Allow, "builtin/read"},
		{"ls /", tool("ls /").on("read:root:/"), Allow, Allow, ""},
		{"ls home of low rank", tool("ls x").lowRank().on("read:outside:/home/u/x"), Allow, Confirm, "builtin/read"},
		{"cat credentials", tool("cat").on("read:secret:/home/u/.aws/credentials"), Deny, Deny, "builtin/secret_read"},
		{"ls .ssh", tool("ls").on("read:secret:/home/u/.ssh"), Confirm, Confirm, "builtin/secret_list"},
		{"cat through a device", tool("cat").on("read:device:/dev/sda"), Confirm, Confirm, "builtin/device_read"},
		{"redirect", tool("echo x", "write").on("write:workspace:" + ws + "/src/a"), Allow, Allow, "builtin/workspace_write"},
		{"redirect bashrc", tool("echo x", "write").on("write:startup:/home/u/.bashrc"), Deny, Deny, "builtin/persistence"},
		{"redirect unknown", tool("echo x", "write").on("write:unknown:/?"), Confirm, Confirm, ""},
		{"redirect outside", tool("echo x", "write").on("write:outside:/home/u/other"), Confirm, Confirm, "builtin/outside"},
		{"redirect policy", tool("echo x", "write").on("write:policy-self:/home/u/.config/agent-tools/policy.json"), Deny, Deny, "builtin/self"},
		{"mkdir", tool("mkdir d", "write").on("write:workspace:" + ws + "/d"), Allow, Allow, ""},
		{"touch tmp", tool("touch f", "write").on("write:tmp:/tmp/f"), Allow, Allow, ""},
		{"cp", tool("cp ./a ./b", "write", "destructive").on("read:workspace:"+ws+"/a", "write:workspace:"+ws+"/b"), Allow, Confirm, "builtin/workspace_copy"},
		{"mv", tool("mv ./a ./b", "write", "delete", "destructive").on("delete:workspace-tracked:"+ws+"/a", "write:workspace:"+ws+"/b"), Allow, Confirm, "builtin/workspace_copy"},
		{"cp outside", tool("cp ./a /home/u/b", "write", "destructive").on("read:workspace:"+ws+"/a", "write:outside:/home/u/b"), Confirm, Confirm, "builtin/outside"},
		{"mv .git", tool("mv .git g", "write", "delete", "destructive").on("delete:workspace-vcs:"+ws+"/.git", "write:workspace:"+ws+"/g"), Confirm, Confirm, "builtin/destructive"},
		{"mv home", tool("mv ~ x", "write", "delete", "destructive").on("delete:root:/home/u", "write:workspace:"+ws+"/g"), Deny, Deny, "builtin/root_tree_move"},
		{"rm tracked", tool("rm src/a", "delete", "destructive", "!reversible").on("delete:workspace-tracked:" + ws + "/src/a"), Confirm, Confirm, "builtin/destructive"},
		{"rm build", tool("rm -rf build", "delete", "destructive", "!reversible").on("delete+rec:workspace-regenerable:" + ws + "/build/x"), Allow, Allow, "builtin/regenerable_delete"},
		{"rm /tmp", tool("rm -rf /tmp", "delete", "destructive").on("delete+rec:tmp:/tmp"), Deny, Deny, "builtin/root_tree"},
		{"rm /", tool("rm -rf /", "delete", "destructive", "!reversible").on("delete+rec:root:/"), Deny, Deny, "builtin/root_tree"},
		{"rm ~", tool("rm -rf /home/u", "delete", "destructive", "!reversible").on("delete+rec:root:/home/u"), Deny, Deny, "builtin/root_tree"},
		{"rm /usr", tool("rm -rf /usr/lib/x", "delete", "destructive").on("delete+rec:system:/usr/lib/x"), Deny, Deny, "builtin/system_tree"},
		{"chmod -R /etc", tool("chmod -R 777 /etc/x", "write").on("write+rec:system:/etc/x"), Deny, Deny, "builtin/system_tree_mode"},
		{"dd", tool("dd of=/dev/sda", "write", "destructive").on("write:device:/dev/sda"), Deny, Deny, "builtin/device"},
		{"git status", tool("git status"), Allow, Allow, ""},
		{"git add", tool("git add", "write"), Allow, Allow, ""},
		{"git commit", tool("git commit", "write"), Allow, Allow, ""},
		{"git commit with hooks", tool("git commit", "write", "execOpaque?").code(CodeProject), Allow, Confirm, "builtin/project_code"},
		{"git status, odd config", tool("git status").code(CodeProject), Allow, Confirm, "builtin/project_code"},
		{"git fetch, odd config", tool("git fetch", "network", "write").code(CodeProject), Confirm, Confirm, "builtin/opaque"},
		{"git fetch", tool("git fetch", "network", "write"), Allow, Allow, "builtin/network_fetch"},
		{"git push", tool("git push", "network", "remoteMutation"), Confirm, Confirm, "builtin/remote"},
		{"git push -f", tool("git push -f", "network", "remoteMutation", "destructive", "!reversible"), Confirm, Confirm, "builtin/destructive"},
		{"git reset --hard", tool("git reset --hard", "write", "destructive", "!reversible"), Confirm, Confirm, "builtin/destructive"},
		{"gh pr list", tool("gh pr list", "network"), Allow, Allow, "builtin/network_read"},
		{"gh pr create", tool("gh pr create", "network", "remoteMutation"), Confirm, Confirm, "builtin/remote"},
		{"gh pr merge", tool("gh pr merge", "network", "remoteMutation", "!reversible"), Confirm, Confirm, "builtin/remote"},
		{"gh repo delete", tool("gh repo delete", "network", "remoteMutation", "destructive", "!reversible"), Confirm, Confirm, "builtin/destructive"},
		{"kubectl delete ns", tool("kubectl delete ns", "network", "remoteMutation", "destructive"), Confirm, Confirm, "builtin/destructive"},
		{"curl", tool("curl", "network").host("example.com", 443), Confirm, Confirm, "builtin/url"},
		{"curl, host unknown", tool("curl", "network"), Confirm, Confirm, "builtin/url"},
		{"curl without network", tool("curl --version"), Allow, Allow, "builtin/read"},
		{"openssl, called a service", func() Step {
			s := tool("openssl s_client", "network")
			s.Hosts = []HostUse{{Kind: HostService}}
			return s
		}(), Confirm, Confirm, "builtin/url"},
		{"curl loopback", tool("curl", "network").host("127.0.0.1", 8080), Confirm, Confirm, "builtin/url"},
		{"curl metadata", tool("curl", "network").host("169.254.169.254", 80), Deny, Deny, "builtin/metadata_host"},
		{"curl metadata, decimal", tool("curl", "network").host("2852039166", 80), Deny, Deny, "builtin/metadata_host"},
		{"npm install", tool("npm install", "network", "write", "delete", "execOpaque").code(CodeProject), Confirm, Confirm, "builtin/install"},
		{"npm test", with(tool("npm test").code(CodeProject), "write?", "delete?", "network?", "destructive?"), Allow, Confirm, "builtin/project_code"},
		{"make", with(tool("make").lowRank().code(CodeProject), "write?", "delete?", "network?", "destructive?", "execOpaque"), Allow, Confirm, "builtin/project_code"},
		{"go build", with(tool("go build", "write").code(CodeProject), "network?"), Allow, Confirm, "builtin/project_code"},
		{"python3 -c", interpreter("python3 -c print(1)", CodeInline), Allow, Confirm, "builtin/inline_code"},
		{"python3 x.py", interpreter("python3 x.py", CodeProject).on("exec:workspace:" + ws + "/x.py"), Allow, Confirm, "builtin/project_code"},
		{"python3 elsewhere.py", interpreter("python3 /home/u/y.py", CodeOpaque).on("exec:outside:/home/u/y.py"), Confirm, Confirm, "builtin/opaque"},
		{"python3 -c $X", interpreter("python3 -c", CodeOpaque), Confirm, Confirm, "builtin/opaque"},
		{"sh -c, not analysed", tool("sh -c").lowRank().code(CodeInline), Allow, Confirm, "builtin/inline_code"},
		{"./x.sh", unknown("./x.sh").code(CodeProject), Allow, Confirm, "builtin/project_code"},
		{"unknown tool", unknown("frobnicate --all"), Confirm, Confirm, "builtin/opaque"},
		{"opaque words", Step{Call: tool("ls").Call, Trust: TrustFacts{Action: Allow}, Confidence: Opaque}, Confirm, Confirm, "builtin/opaque"},
		{"rm behind sudo", func() Step {
			s := tool("rm x", "delete", "destructive").on("delete:workspace:" + ws + "/x")
			s.Via = []string{"sudo"}
			return s
		}(), Deny, Deny, "builtin/system"},
		{"find . -delete", tool("find -delete", "delete", "destructive").on("delete+rec:root:" + ws), Confirm, Confirm, "builtin/destructive"},
		{"find ~ -delete", tool("find -delete", "delete", "destructive").on("delete+rec:root:/home/u"), Deny, Deny, "builtin/root_tree"},
		{"find . ~ -delete", tool("find -delete", "delete", "destructive").on("delete+rec:root:"+ws, "delete+rec:root:/home/u"), Deny, Deny, "builtin/root_tree"},
		{"black", tool("black", "write", "destructive").on("write+rec:workspace:" + ws), Allow, Confirm, "builtin/workspace_rewrite"},
		{"gofmt", tool("gofmt -w", "write", "destructive").on("read:workspace:" + ws + "/x.go"), Allow, Confirm, "builtin/workspace_rewrite"},
		{"gofmt elsewhere", tool("gofmt -w", "write", "destructive").on("read:outside:/home/u/x.go"), Confirm, Confirm, "builtin/destructive"},
		{"gzip outside", tool("gzip", "write", "delete", "destructive").on("write+delete:outside:/home/u/x"), Confirm, Confirm, "builtin/outside"},
		{"sudo rm", tool("sudo", "privileged", "destructive"), Deny, Deny, "builtin/system"},
		{"sudo", tool("sudo ls", "privileged"), Confirm, Confirm, "builtin/privileged"},
		{"crontab", tool("crontab", "persistence", "write"), Deny, Deny, "builtin/persistence_effect"},
		{"gh auth token", tool("gh auth token", "secretRead"), Confirm, Confirm, "builtin/secret_tool"},
		{"billable", tool("aws ec2 run-instances", "network", "remoteMutation", "billable"), Confirm, Confirm, "builtin/billable"},
		{"atip approve", tool("atip approve abc"), Deny, Deny, "builtin/self_verbs"},
		{"atip approve, unresolved", unknown("atip -q approve abc"), Deny, Deny, "builtin/self_verbs"},
		{"unsigned reader", tool("rg x").lowRank(), Allow, Confirm, ""},
		{"unsigned writer", tool("fmt x", "write").lowRank().on("write:workspace:" + ws + "/x"), Confirm, Confirm, "builtin/trust"},
		{"unsigned network", tool("mygh pr list", "network").lowRank(), Confirm, Confirm, "builtin/trust"},
		{"compromised", func() Step { s := tool("ls"); s.Trust = TrustFacts{Level: "COMPROMISED", Reason: "revoked"}; return s }(), Deny, Deny, "builtin/trust"},
		{"no verdict", func() Step { s := tool("ls"); s.Trust = TrustFacts{}; return s }(), Deny, Deny, "builtin/trust"},
	}
}

func TestBuiltin(t *testing.T) {
	s := mustCompile(t)
	for _, row := range builtinRows() {
		req := requestOf(row.step)
		d := s.Decide(req)
		if d.Action != row.full {
			t.Errorf("%s: confined: %v, want %v: %+v", row.name, d.Action, row.full, d.Reasons)
		}
		if row.rule != "" && !slices.Contains(ruleNames(d), row.rule) {
			t.Errorf("%s: rules %v, want %s", row.name, ruleNames(d), row.rule)
		}
		if len(d.Reasons) == 0 {
			t.Errorf("%s: no reason", row.name)
		}
		req.Enforce = Enforce{}
		if d := s.Decide(req); d.Action != row.bare {
			t.Errorf("%s: unconfined: %v, want %v: %v", row.name, d.Action, row.bare, ruleNames(d))
		}
	}
}

func TestGrants(t *testing.T) {
	s := mustCompile(t)
	listed := tool("gh pr list", "network")
	listed.Hosts, listed.ServiceHosts = []HostUse{{Kind: HostService}}, []string{"api.github.com", "*.github.com"}
	service := listed
	service.ServiceHosts = nil
	if d := s.Decide(requestOf(listed)); strings.Join(d.Grants.Hosts, " ") != "*.github.com api.github.com" || !d.Grants.NetKnown {
		t.Errorf("hosts of a service: %+v", d.Grants)
	}
	for _, row := range []struct {
		name    string
		steps   []Step
		effects atip.Set
		net     NetMode
		paths   int
	}{
		{"service with hosts", []Step{listed}, fNetwork, NetAllowlist, 0},
		{"service without", []Step{service}, fNetwork, NetFull, 0},
		{"one of each", []Step{listed, service}, fNetwork, NetFull, 0},
		{"reader", []Step{tool("cat a").on("read:workspace:/home/u/p/a")}, 0, NetNone, 1},
		{"writer", []Step{tool("touch a", "write").on("write:workspace:/home/u/p/a")}, fWrite, NetNone, 1},
		{"gh", []Step{tool("gh pr list", "network")}, fNetwork, NetFull, 0},
		{"test", []Step{with(tool("npm test").code(CodeProject), "network?", "write?")}, fWrite | fDelete | fDestructive | fOpaque, NetLoopback, 0},
		{"url approved", []Step{tool("curl", "network").host("docs.rs", 443)}, fNetwork, NetAllowlist, 0},
		{"denied", []Step{tool("rm -rf /", "delete").on("delete+rec:root:/")}, 0, NetNone, 0},
	} {
		d := s.Decide(requestOf(row.steps...))
		if d.Grants.Effects != row.effects || d.Grants.Net != row.net || len(d.Grants.Paths) != row.paths {
			t.Errorf("%s: effects %s, want %s; net %v; paths %v", row.name,
				setNames(d.Grants.Effects), setNames(row.effects), d.Grants.Net, d.Grants.Paths)
		}
	}
}

// One string is one sandbox: parts that are fine alone may not be fine together.
func TestUnionOfGrants(t *testing.T) {
	s := mustCompile(t)
	list, script := tool("gh pr list", "network"), unknown("./x.sh").code(CodeProject)
	for _, steps := range [][]Step{{list, script}, {script, list}} {
		d := s.Decide(requestOf(steps...))
		if d.Action != Confirm || len(d.Alternatives) != 1 {
			t.Errorf("together: %v, alternatives %v, want confirm with advice to split: %v", d.Action, d.Alternatives, ruleNames(d))
		}
		for _, st := range steps {
			if d := s.Decide(requestOf(st)); d.Action != Allow {
				t.Errorf("alone: %v", d.Action)
			}
		}
	}
}

func TestEdges(t *testing.T) {
	s := mustCompile(t)
	curl, sh := tool("curl", "network"), tool("sh").code(CodeOpaque)
	for kind, want := range map[EdgeKind]Action{
		EdgeUnknown: Confirm, NetworkToCode: Deny, DecodedToCode: Deny, WrittenToCode: Confirm,
		SecretToNetwork: Deny, SocketShell: Deny, ForkBomb: Deny, ForkBomb + 1: Deny,
	} {
		req := requestOf(curl, sh)
		req.Edges = []Edge{{0, 1, kind}}
		if d := s.Decide(req); d.Action != want {
			t.Errorf("edge %d: %v, want %v", kind, d.Action, want)
		}
		req.Edges[0].To = 7
		if d := s.Decide(req); d.Action != Deny {
			t.Errorf("edge into nowhere: %v", d.Action)
		}
	}
}

func TestZeroDenies(t *testing.T) {
	var nobody *Set
	for name, d := range map[string]Decision{
		"nil set": nobody.Decide(requestOf(tool("ls"))), "no steps": mustCompile(t).Decide(Request{}),
		"zero step": mustCompile(t).Decide(Request{Steps: make([]Step, 1), Enforce: full}), "zero decision": {},
	} {
		if d.Action != Deny {
			t.Errorf("%s: %v", name, d.Action)
		}
	}
}

// A refusal must not say how to get round it.
func TestReasonsNameNoWayRound(t *testing.T) {
	s := mustCompile(t)
	for _, row := range builtinRows() {
		d := s.Decide(requestOf(row.step))
		for _, r := range d.Reasons {
			low := strings.ToLower(r.Text + " " + r.Suggest)
			for _, word := range []string{"approve", "grant", "switch", " key"} {
				if d.Action != Allow && strings.Contains(low, word) && !strings.Contains(row.name, "atip") {
					t.Errorf("%s: %q names %q", row.name, r.Text, word)
				}
			}
		}
	}
}
