package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/gitrepo"
	"github.com/atip-dev/atip-exec/internal/ip"
	"github.com/atip-dev/atip-exec/internal/proxy"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/trust"
)

// HostList is what the proxy of a run is told.
type HostList struct {
	Rules   *proxy.Rules
	Forward map[int]string // port inside the run: service of this machine
}

// network turns the network that policy granted into one that this run is held to.
func (p *confining) network() (sandbox.Net, error) {
	g := p.Decision.Grants
	switch g.Net {
	case policy.NetLoopback:
		return sandbox.Net{Mode: sandbox.NetLoopback}, nil
	case policy.NetFull:
		net := sandbox.Net{Mode: sandbox.NetFull}
		if len(p.Policies.Network().Deny) > 0 {
			net.Because = "which hosts the tool's own service has is not known, so network.deny is not held"
		}
		return net, nil
	case policy.NetAllowlist:
	default:
		return sandbox.Net{}, nil
	}
	forced, _ := sandbox.TierByName(p.Policies.Sandbox().Tier)
	if p.Policies.Sandbox().Confine == "none" || !p.Host.HostLists(forced) && g.NetKnown && !p.hostsDelegated() {
		// Landlock knows ports, not hosts: a known tool that was granted a list gets the
		// full network, which is a gap of the receipt. A policy that requires the guarantee
		// does not accept it; a delegation of hosts, and a tool that nobody vouches for, are
		// refused where the list is selected.
		return sandbox.Net{Mode: sandbox.NetFull, Unbounded: g.Hosts}, nil
	}
	if g.NetKnown && !p.hostsDelegated() && slices.ContainsFunc(g.Hosts, unknownWord) {
		// A person agreed to a host that is known only when the command runs.
		net := sandbox.Net{Mode: sandbox.NetFull, Because: "a host is not known before the command runs"}
		for _, h := range g.Hosts {
			if unknownWord(h) {
				h = "?"
			}
			net.Unbounded = append(net.Unbounded, h)
		}
		return net, nil
	}
	net := sandbox.Net{Mode: sandbox.NetAllowlist}
	np := p.Policies.Network()
	config := proxy.Config{Deny: np.Deny, Private: np.Private, Upstream: np.Upstream}
	p.HostList.Forward = map[int]string{}
	for _, service := range np.Forward {
		if _, port := step.SplitPort(service); port != 0 {
			p.HostList.Forward[port] = service
		}
	}
	for _, h := range g.Hosts {
		for _, host := range withPorts(h) {
			if name, port := step.SplitPort(host); slices.Contains([]string{"localhost", "127.0.0.1", "[::1]", "::1"}, name) {
				// The run has a loopback of its own; the service lies on the machine's.
				p.HostList.Forward[port] = host
				continue
			}
			if _, err := proxy.Compile(proxy.Config{Allow: []string{host}}); err != nil {
				continue // no host at all: there is nothing to reach
			}
			config.Allow = append(config.Allow, host)
		}
	}
	for _, h := range np.Allow {
		if !strings.Contains(h, "/") { // a range covers addresses in words, which were granted one by one
			config.Allow = append(config.Allow, h)
		}
	}
	for i := range p.chain {
		if p.chain[i].Hosts != nil {
			config.Within = append(config.Within, p.chain[i].Hosts)
		}
	}
	var err error
	if p.HostList.Rules, err = proxy.Compile(config); err != nil {
		return net, &policy.ParseError{Code: errcode.PolicySyntax, File: "policy", Msg: err.Error()}
	}
	net.Allow, net.Direct = config.Allow, direct(config.Allow)
	net.Forward = slices.Sorted(maps.Keys(p.HostList.Forward))
	return net, nil
}

// unknownWord reports a host in a word that the reader of shell strings could not know.
func unknownWord(host string) bool { return strings.IndexByte(host, 0) >= 0 }

// direct lists the hosts that are known by name and port: those that programs can reach
// which do not ask a proxy.
func direct(hosts []string) []sandbox.Direct {
	var out []sandbox.Direct
	for _, h := range hosts {
		name, port := step.SplitPort(strings.ToLower(h))
		if port == 0 {
			port = 443 // of network.allow
		}
		d := sandbox.Direct{Host: name, Port: port}
		if _, address := ip.Parse(strings.Trim(name, "[]")); address || strings.HasPrefix(name, "*") || slices.Contains(out, d) || len(out) == sandbox.MaxDirect {
			continue
		}
		out = append(out, d)
	}
	return out
}

// hostsDelegated reports whether this run was lent some hosts and no others.
func (p *Plan) hostsDelegated() bool {
	return slices.ContainsFunc(p.chain, func(r policy.Restrict) bool { return r.Hosts != nil })
}

// withPorts completes a granted host. One whose words leave the port open is a web server.
func withPorts(host string) []string {
	if _, port := step.SplitPort(host); port != 0 {
		return []string{host}
	}
	if strings.Count(host, ":") > 1 && !strings.HasPrefix(host, "[") {
		host = "[" + host + "]"
	}
	return []string{host + ":443", host + ":80"}
}

// unapproved is the reason of a refusal under an allowlist.
const unapproved = "unapproved_binary"

// onlyApproved denies what an organisation's registry does not approve: each file that
// the command words start must have a document there. Nothing else stands in for it, no
// override, no signature and no person. An error means that the registry must be asked
// and cannot be.
func (p *judging) onlyApproved() error {
	lists := p.Policies.Allowlists()
	if len(lists) == 0 || p.Decision.Action == policy.Deny {
		return nil
	}
	for _, list := range lists {
		known := map[string]string{}
		for i, s := range p.Steps {
			if i == 0 && s.Missing != nil || shellBuiltin(s) {
				continue // nothing would start
			}
			why, err := p.unapproved(list, s, known)
			if err != nil {
				return err
			}
			if why != "" {
				p.denyUnapproved(list, i, why)
				return nil
			}
		}
	}
	return nil
}

func shellBuiltin(s *step.Step) bool { return s.Call.Provenance.Source == "shell:builtin" }

// unapproved says why a step may not run, "" if it may.
func (p *Plan) unapproved(list policy.Allowlist, s *step.Step, known map[string]string) (string, error) {
	if len(s.ID.Chain) == 0 {
		return "it is not known which file would run", nil
	}
	for _, part := range s.ID.Chain {
		switch {
		case part.Role == trust.RoleArgument, slices.Contains(p.Machine.Programs(), part.Path):
			continue // read and not started, or this program, which judges again
		case part.Digest == "":
			return part.Path + " cannot be read", nil
		}
		why, asked := known[part.Digest]
		if !asked {
			var err error
			if why, err = p.authority().Approval(list, part); err != nil {
				return "", err
			}
			known[part.Digest] = why
		}
		if why != "" {
			return part.Path + " (sha256:" + part.Digest + ") " + why, nil
		}
	}
	return "", nil
}

func (p *judging) denyUnapproved(list policy.Allowlist, i int, why string) {
	s := p.Steps[i]
	text := quote.Words(s.Argv) + ": " + why
	p.Decision.Action, p.Decision.Grants, p.Decision.Trust, p.refused = policy.Deny, policy.Grants{}, true, unapproved
	rule := list.Layer.String() + "/approval.allowlist"
	p.Decision.Reasons = append(p.Decision.Reasons, policy.Reason{Rule: rule, File: list.File, Action: policy.Deny, Text: text, Step: i,
		Suggest: "use a tool that the organisation approves; after it approved one, `atip sync TOOL` asks again"})
	if i < len(p.Decision.Steps) {
		p.Decision.Steps[i].Action = policy.Deny
		p.Decision.Steps[i].Rules = append(p.Decision.Steps[i].Rules, rule)
	}
}

// signedMetadata denies what rests on a document without a proven signature where policy
// requires one; the documents inside this program are part of it.
func (p *judging) signedMetadata() {
	if !p.authority().TrustPolicy().RequireMetadata || p.Decision.Action == policy.Deny {
		return
	}
	for i, s := range p.Steps {
		v := s.DocumentVerdict
		if v.Reason == "" || v.Action == trust.Allow {
			continue
		}
		p.Decision.Action, p.Decision.Grants, p.Decision.Trust, p.refused = policy.Deny, policy.Grants{}, true, v.Reason
		suggest := v.NextStep("the document")
		suggest = cmp.Or(suggest, "use a tool whose metadata is built in, or remove the document")
		p.Decision.Reasons = append(p.Decision.Reasons, policy.Reason{Rule: "trust/metadata", Action: policy.Deny, Step: i,
			Text:    quote.Words(s.Argv) + ": metadata_refused, signed metadata is required and that of " + s.ID.Effective + " is " + v.Level.String() + " (" + v.Reason + ")",
			Suggest: suggest})
		if i < len(p.Decision.Steps) {
			p.Decision.Steps[i].Action = policy.Deny
		}
		return
	}
}

// maxSent is how many references of a push are listed one by one.
const maxSent = 64

// sends reports a step that sends references of a repository to another one.
func sends(s *step.Step) bool {
	path := s.Call.Path
	switch {
	case len(path) == 0:
		return false
	case s.Call.Tool == "git":
		return path[0] != "stash" && slices.ContainsFunc(path, func(word string) bool {
			return strings.HasSuffix(word, "-push") || strings.HasSuffix(word, "send-pack") || word == "push"
		})
	}
	return s.Call.Tool == "gh" && len(path) == 2 && (path[0] == "pr" || path[0] == "repo") && path[1] == "create"
}

// pushes is sends of what names its references in words.
func pushes(s *step.Step) bool {
	return s.Call.Tool == "git" && len(s.Call.Path) == 1 && s.Call.Path[0] == "push"
}

// repositoryOf is the one that a step of git uses. own says that its words name it.
func repositoryOf(s *step.Step) (r gitrepo.Repository, own bool, err error) {
	base := subpath.Join(s.Cwd, s.Call.Chdir)
	for _, o := range s.Call.Options {
		if o.Flag == "--git-dir" {
			r, err = gitrepo.Dir(subpath.Join(base, o.Value))
			return r, true, err
		}
	}
	r, err = gitrepo.Find(base)
	return r, false, err
}

// sent lists the references that the steps of a plan send, each with the object that it names:
// what a person agrees to is a commit and not the name of a branch. An error says that they
// cannot be told.
func (p *Plan) sent() (map[string]any, error) {
	out := map[string]any{}
	first := ""
	for _, s := range p.Steps {
		if !sends(s) {
			continue
		}
		r, _, err := repositoryOf(s)
		if errors.Is(err, gitrepo.ErrNone) || errors.Is(err, fs.ErrNotExist) {
			continue // git ends
		}
		if err != nil {
			return nil, err
		}
		refs := p.Rights.refs
		if refs == nil {
			if refs, err = r.Refs(); err != nil {
				return nil, err
			}
		}
		into := map[string]string{}
		if err := refs.Sent(p.push(s), into); err != nil {
			return nil, err
		}
		if step.Recurses(s) {
			for _, tree := range r.Pointers(p.Dirs.Home).Trees {
				sub, err := gitrepo.At(tree)
				if err != nil {
					continue // not fetched, or nothing that git goes into
				}
				refs, err := sub.Refs()
				if err != nil {
					return nil, err
				}
				all := map[string]string{}
				_ = refs.Sent(gitrepo.Push{Mirror: true}, all)
				for name, id := range all {
					into[name+" of "+tree] = id
				}
			}
		}
		first = cmp.Or(first, r.Dir)
		for name, id := range into {
			if r.Dir != first {
				name += " of " + r.Dir
			}
			out[strings.ToValidUTF8(name, "\ufffd")] = cmp.Or(id, "nothing")
		}
	}
	if len(out) > maxSent {
		var all strings.Builder
		for _, name := range slices.Sorted(maps.Keys(out)) {
			fmt.Fprintln(&all, name, out[name])
		}
		return map[string]any{fmt.Sprintf("%d refs", len(out)): sum([]byte(all.String()))}, nil
	}
	return out, nil
}

// push says what the words of a step send, and the settings where the words leave it to them.
func (p *Plan) push(s *step.Step) gitrepo.Push {
	if s.Call.Tool == "gh" {
		return gitrepo.Push{Specs: []string{"HEAD"}}
	}
	config, branch, err := p.site().GitConfigOf(s)
	if !pushes(s) || err != nil || len(s.Call.UnknownOptions) > 0 || s.Call.Exactness != atip.Exact {
		return gitrepo.Push{Mirror: true} // whatever it sends is among them
	}
	out := gitrepo.Push{All: hasFlag(s, "--all") || hasFlag(s, "--branches"), Mirror: hasFlag(s, "--mirror"), Tags: hasFlag(s, "--tags"), Follow: hasFlag(s, "--follow-tags") || config.Bool("push.followtags"), Delete: hasFlag(s, "--delete", "-d")}
	words := s.Call.Positionals
	if len(words) > 1 {
		for _, w := range words[1:] {
			out.Specs = append(out.Specs, w.Value)
		}
		return out
	}
	remote := config.DefaultRemote(branch, true)
	for _, o := range s.Call.Options {
		if o.Flag == "--repo" {
			remote = o.Value
		}
	}
	if len(words) == 1 {
		remote = words[0].Value
	}
	out.Mirror = out.Mirror || config.Bool("remote."+remote+".mirror")
	if out.All || out.Mirror || out.Tags {
		return out
	}
	if out.Specs = config.All("remote." + remote + ".push"); len(out.Specs) > 0 {
		return out
	}
	if out.Specs = []string{"HEAD"}; slices.Contains(config.All("push.default"), "matching") {
		out.Specs = append(out.Specs, ":")
	}
	return out
}

// hasFlag reports an option, by the first letters of its name, too.
func hasFlag(s *step.Step, long string, short ...string) bool {
	return slices.ContainsFunc(s.Call.Options, func(o atip.OptionUse) bool {
		return len(o.Flag) > 3 && strings.HasPrefix(long, o.Flag) || slices.Contains(short, o.Flag)
	})
}

// frozen reports that all of a run that changes a repository is what it sends, so that the
// references need not be the repository's own.
func (p *Plan) frozen(r gitrepo.Repository) bool {
	found := false
	for _, s := range p.Steps {
		switch {
		case pushes(s):
			found = true
		case s.Foreign() || s.Call.Effects[atip.Write].Value != atip.No:
			return false
		case s.Call.Tool == "git":
			if other, _, err := repositoryOf(s); err != nil || other.Dir != r.Dir {
				return false
			}
		}
	}
	return found
}

// movers are the commands of a run that sends, beside the sending itself, that can make it send
// something else than what the references name now: a commit in the same text, code of the project.
func (p *Plan) movers() []string {
	var out []string
	for _, s := range p.Steps {
		git := s.Call.Tool == "git" || slices.Contains(s.Call.Execs, "git")
		writes := s.Call.Effects[atip.Write].Value != atip.No && (git || s.Call.Provenance.Rank < atip.Org || slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool {
			return r.Class == atip.ClassWorkspaceVCS && r.Access&(atip.AccessWrite|atip.AccessDelete) != 0
		}))
		if !sends(s) && (s.Foreign() || writes) {
			out = append(out, quote.Words(s.Argv))
		}
	}
	if slices.ContainsFunc(p.Steps, sends) {
		return out
	}
	return nil
}

// Subjects are the first lines of the messages of what is sent, by object.
func (p *Plan) Subjects() map[string]string {
	out := map[string]string{}
	sent, _ := p.sent()
	for _, s := range p.Steps {
		r, _, err := repositoryOf(s)
		if !sends(s) || err != nil {
			continue
		}
		for _, id := range sent {
			id, _ := id.(string)
			if subject := r.Subject(id); subject != "" {
				out[id] = subject
			}
		}
	}
	return out
}

// localRemotes are the repositories of this machine to which a step sends.
func localRemotes(s *step.Step) []string {
	var out []string
	for _, r := range s.Call.Resources {
		// A name that no remote has is a path to git, too, and none to a person.
		if sends(s) && r.Kind == "path" && strings.HasPrefix(r.Why, "remote ") && r.Access&atip.AccessWrite != 0 && r.Abs != "" && strings.Contains(r.Value, "/") {
			out = append(out, filepath.Clean(r.Abs))
		}
	}
	return out
}

// Reachable refuses a push to a repository of this machine that the sandbox would not let it
// write: an answer would be spent on a command that can only fail.
func (p *Plan) Reachable() error {
	for _, s := range p.Steps {
		for _, path := range localRemotes(s) {
			refuse := func(why, fix string) error {
				return fault.New(errcode.Denied, "denied: "+quote.Words(s.Argv)+" sends to "+path+", "+why).WithFix(fix, "").With("decision", policy.Deny)
			}
			r, err := gitrepo.Find(path)
			if err != nil || r.Dir != path && r.WorkTree != path {
				// git is to say what is wrong with it, if it can.
				if _, err := os.Stat(path); err != nil {
					return refuse("which is not there", "name a repository; `git remote -v` lists the remotes")
				}
				return refuse("which is no repository", "name a repository; `git remote -v` lists the remotes")
			}
			granted := func(list []sandbox.Grant, path string, rights sandbox.Rights) bool {
				return slices.ContainsFunc(list, func(g sandbox.Grant) bool { return g.Rights&rights == rights && subpath.Within(path, g.Path) })
			}
			if p.Setup.Tier() == sandbox.T0 {
				continue
			}
			if !granted(p.Profile.Write, r.Common, sandbox.Write|sandbox.Remove) {
				return refuse("which this run cannot write", "push to a repository that is not in a directory of this program, of credentials or of the system, or push outside")
			}
			c, err := r.Config(p.Dirs.Home)
			if err != nil {
				return refuse(err.Error(), "repair the repository")
			}
			for _, hook := range r.LiveHooks(c) {
				switch hook {
				case "pre-receive", "update", "post-receive", "post-update", "reference-transaction", "push-to-checkout", "proc-receive":
					if hooks := r.Hooks(c); !granted(slices.Concat(p.Profile.Exec, p.Profile.Write), hooks, sandbox.Exec) {
						return refuse("whose hook "+hook+" cannot be started here", `name `+hooks+` in "sandbox": {"exec": […]} of your policy, or push outside`)
					}
				}
			}
		}
	}
	return nil
}
