package effects

import (
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// builtinStep is a builtin of the shell: harmless, but for what its metadata says
// of those that also exist as programs.
func (c *collector) builtinStep(sh *step.Step, argv, via []string, cwd string) (*step.Step, error) {
	name := ":"
	if len(argv) > 0 {
		name = argv[0]
	} else {
		argv = []string{":"}
	}
	s := &step.Step{Argv: step.Shown(argv), Verdict: sh.Verdict}
	s.Via, s.Cwd, s.Confidence, s.Trust = via, cwd, policy.Exact, sh.Trust
	s.File = policy.FileFacts{Believed: true, SystemPath: true, Names: []string{name}}
	switch {
	case name == "test", name == "[", name == "kill" && !step.OwnProcesses(argv) && !c.ownJobs(argv):
		found, err := c.lookup(name)
		if err != nil {
			return nil, err
		}
		s.Call = found.Resolve(argv, c.environment())
		s.Call.Resources = append(s.Call.Resources, asked(argv)...)
		for i := range s.Call.Resources {
			c.place(c.site.World, &s.Call.Resources[i], cwd)
			c.asked(s, &s.Call.Resources[i])
		}
		c.settle(s)
		return s, nil
	}
	s.Call = atip.Call{Tool: name, InvokedAs: name, Argv: s.Argv, Path: []string{}, Exactness: atip.Exact, Readings: 1, Options: []atip.OptionUse{}, UnknownOptions: []string{},
		Positionals: []atip.Positional{}, Resources: []atip.Resource{}, Nested: []atip.Nested{}, Secrets: []string{},
		Provenance: atip.Provenance{Channel: "builtin", Rank: atip.Vendor, Binding: "none", Source: "shell:builtin"}}
	for e := range s.Call.Effects {
		s.Call.Effects[e] = step.Harmless(atip.Effect(e), "shell:builtin")
	}
	if (name == "." || name == "source") && len(argv) > 1 && !step.HarmlessFile(argv[1]) {
		r := atip.Resource{Kind: "path", Value: argv[1], Access: atip.AccessRead, Why: "argv[1]"}
		c.place(c.site.World, &r, cwd)
		r.Value = step.Shown(argv[1:2])[0]
		c.ownFile(s, &r, nil)
		s.Call.Resources = append(s.Call.Resources, r)
		s.Raise(r)
	}
	return s, nil
}

// asked lists the files whose existence a test asks for.
func asked(argv []string) []atip.Resource {
	var out []atip.Resource
	for i := 1; i+1 < len(argv); i++ {
		if len(argv[i]) == 2 && argv[i][0] == '-' && strings.IndexByte("bcdefghkprsuwxLNOGS", argv[i][1]) >= 0 {
			out = append(out, atip.Resource{Kind: "path", Value: argv[i+1], Access: atip.AccessRead, Why: argv[i]})
		}
	}
	return out
}

// asked lets a file of secrets in the workspace be one like others for who only asks whether
// it is there: listing its directory says so, too.
func (c *collector) asked(s *step.Step, r *atip.Resource) {
	if r.Class == atip.ClassSecret && r.Access == atip.AccessRead && !r.Recursive && (s.Call.Tool == "test" || s.Call.Tool == "[") && subpath.Within(r.Abs, c.site.Workspace) {
		r.Class = atip.ClassWorkspace
	}
}

// opaqueStep is a part of a text that cannot be read: the worst is assumed.
func (c *collector) opaqueStep(sh *step.Step, argv, via []string, cwd, why string) *step.Step {
	if len(argv) == 0 {
		argv = []string{"…"}
	}
	argv = step.Shown(argv)
	s := &step.Step{Argv: argv, Verdict: sh.Verdict}
	s.Via, s.Cwd, s.Confidence, s.Trust, s.RunsCode = via, cwd, policy.Opaque, sh.Trust, policy.CodeOpaque
	s.Call = atip.UnknownCall(argv, "")
	if why != "" {
		s.Call.Warnings = append(s.Call.Warnings, why)
	}
	return s
}

// redirections adds the files that the shell opens for a command.
func (c *collector) redirections(s *step.Step, cmd *shell.Command, cwd string) {
	for _, r := range cmd.Redirects {
		if host, ok := step.Socket(r.Path); ok {
			s.Call.Effects[atip.Network] = atip.Fact{Value: atip.Yes, Source: "redirection", Rank: atip.Vendor}
			s.Hosts = append(s.Hosts, host)
			c.note(s, sinkSocket)
			continue
		}
		if step.HarmlessFile(r.Path) {
			continue
		}
		res := atip.Resource{Kind: "path", Value: r.Path, Why: "redirection"}
		if r.Read {
			res.Access |= atip.AccessRead
		}
		if r.Write {
			res.Access |= atip.AccessWrite
			s.Call.Effects[atip.Write] = atip.Fact{Value: atip.Yes, Source: "redirection", Rank: atip.Vendor}
		}
		c.place(c.site.World, &res, cwd)
		c.ownFile(s, &res, r.Content)
		s.Raise(res)
		c.secretTail(s, &res)
		s.Call.Resources = append(s.Call.Resources, res)
		if at := c.index(s); r.Read && res.Class == atip.ClassSecret && s.Call.Effects[atip.Network].Value == atip.Yes && at >= 0 {
			// What is fed to a tool goes out; that it may use the file itself is another thing.
			c.edge(at, at, policy.SecretToNetwork)
		}
		if r.Write {
			c.wrote(s, res.Abs, r.Content)
		}
	}
}

// place fills a resource as far as it is known where it is.
func (c *collector) place(world place.World, r *atip.Resource, cwd string) {
	if r.Kind != "path" {
		return
	}
	unknown := strings.IndexByte(r.Value, 0) >= 0 || c.ctx != nil && c.ctx.cwdUnknown && !filepath.IsAbs(r.Value) && !strings.HasPrefix(r.Value, "~")
	if !unknown {
		world.Fill(r, cwd)
		c.follow(world.Fill, r, cwd)
		return
	}
	r.Abs, r.Class = "", atip.ClassUnknown
	if r.Access&^atip.AccessRead == 0 {
		// The kernel keeps secrets from being read, whatever the path is.
		r.Class = atip.ClassOutside
	}
}
