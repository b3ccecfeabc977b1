package effects

import (
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// maxTails bounds how many words of one step are tried as the beginning of a command.
const maxTails = 12

// tails looks for commands in the words of a step of which nobody knows what it runs: a
// wrapper without metadata (`newwrapper -n 5 rm -rf ~`), an option with a text that its
// tool runs (`gdb -ex 'shell rm -rf ~'`). Such a step asks whatever they are, so they can
// only make it stricter and say what it would do.
func (c *collector) tails(s *Step) {
	unknown := s.Call.Provenance.Channel == "none" && s.RunsCode == policy.CodeNone
	opaque := s.RunsCode == policy.CodeOpaque || s.Call.Effects[atip.ExecOpaque].Value != atip.No && s.RunsCode == policy.CodeNone
	if c.peeking || len(s.Argv) < 2 {
		return
	}
	if unknown || opaque || s.RunsCode != policy.CodeNone {
		c.handedSecrets(s)
		c.handedOutputs(s)
	}
	if !unknown && !opaque && s.RunsCode == policy.CodeInline && !hasHole(s.Argv) {
		c.handedCommand(s)
	}
	if !unknown && !opaque || hasHole(s.Argv) {
		return
	}
	sub := &collector{site: c.site, out: c.out, path: c.path, found: c.found, steps: []*Step{s}, peeking: true, depth: maxPeekDepth}
	cwd := subpath.Join(s.Cwd, s.Call.Chdir)
	for i := 1; i < len(s.Argv) && i <= maxTails; i++ {
		if tellTale(s.Argv[i]) && i+1 < len(s.Argv) {
			_ = sub.add(s.Argv[i:], s.Via, cwd, policy.Exact)
			break
		}
	}
	if opaque {
		for _, w := range s.Argv[1:] {
			for _, text := range commandTexts(w) {
				word, _, more := strings.Cut(text, " ")
				if !more || !tellTale(word) {
					continue
				}
				if script, err := shell.Read(text, sub.options(cwd)); err == nil {
					_ = sub.script(s, script, s.Via)
				}
			}
		}
	}
	s.ShowEffects(sub.steps[1:])
	if s.Call.Effects[atip.Network].Value != atip.Yes || unknown {
		c.hide(sub) // else the paths may be those of another machine
	}
	s.showVerbs()
}

// showVerbs takes a tool of which nobody knows what it does by its word: one that is told
// to delete destroys something.
func (s *Step) showVerbs() {
	for i, w := range s.Argv {
		if i == 0 {
			w = filepath.Base(w)
			if strings.HasPrefix(w, "drop") {
				w = "drop" // dropdb, dropuser
			}
		}
		first, _, _ := strings.Cut(strings.TrimLeft(w, "-/:"), " ")
		for part := range strings.FieldsFuncSeq(strings.ToLower(first), func(r rune) bool { return strings.ContainsRune(":=-_.", r) }) {
			var effects []atip.Effect
			switch part {
			case "delete", "destroy", "drop", "purge", "wipe", "remove", "rm", "del", "erase", "terminate", "truncate", "flush", "flushall", "prune", "clean", "uninstall", "unpublish", "reset", "nuke", "obliterate", "downgrade":
				effects = []atip.Effect{atip.Destructive}
			case "publish", "push", "deploy", "upload", "release":
				effects = []atip.Effect{atip.RemoteMutation, atip.Network}
			}
			for _, e := range effects {
				if s.Call.Effects[e].Value != atip.Unknown {
					continue
				}
				s.Call.Effects[e] = atip.Fact{Value: atip.Yes, Source: "word " + w, Rank: atip.Inferred}
			}
		}
	}
}

// handedSecrets adds the secrets of the home directory, and of the system, that are handed to
// code: what it does with them is not known, and reading them is the least.
func (c *collector) handedSecrets(s *Step) {
	if IsShell(s.Call.Tool) || s.Call.Tool == "ssh" {
		return
	}
	for _, w := range s.Argv[1:] {
		if name, value, ok := strings.Cut(w, "="); ok && strings.HasPrefix(name, "-") {
			w = value
		}
		if w = strings.TrimPrefix(w, "@"); !strings.HasPrefix(w, "/") && !strings.HasPrefix(w, "~/") || strings.IndexByte(w, 0) >= 0 {
			continue
		}
		r, ok := c.guarded(s, w)
		if !ok || r.Class != atip.ClassSecret || subpath.Within(r.Abs, c.site.Workspace) {
			continue
		}
		s.raise(r)
		s.Call.Resources = append(s.Call.Resources, r)
	}
}

// handedCommand asks where a program text is handed the words of a command that deletes:
// python3 -c 'subprocess.run(sys.argv[1:])' rm -rf x.
func (c *collector) handedCommand(s *Step) {
	sub := &collector{site: c.site, out: c.out, path: c.path, found: c.found, steps: []*Step{s}, peeking: true, depth: maxPeekDepth}
	for i := 2; i+1 < len(s.Argv); i++ {
		if tellTale(s.Argv[i]) && containsAny(s.Argv[i-1], "argv", "ARGV", "$@") {
			_ = sub.add(s.Argv[i:], s.Via, subpath.Join(s.Cwd, s.Call.Chdir), policy.Exact)
			break
		}
	}
	if removes(sub.steps[1:]) {
		s.RunsCode = policy.CodeOpaque
		s.ShowEffects(sub.steps[1:])
	}
	c.hide(sub)
}

// handedOutputs adds files outside of the workspace that code is told to write: the kernel
// keeps it from that, so a person is asked beforehand.
func (c *collector) handedOutputs(s *Step) {
	for i, w := range s.Argv[1:] {
		name, value, attached := strings.Cut(w, "=")
		if !attached {
			name, value = s.Argv[i], w
		}
		if i == 0 && !attached || !outputOption(name) || strings.IndexByte(value, 0) >= 0 || !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "~/") && !strings.HasPrefix(value, "../") {
			continue
		}
		r := atip.Resource{Kind: "path", Value: value, Access: atip.AccessWrite, Why: name}
		switch c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir)); r.Class {
		case atip.ClassStartup, atip.ClassSecret, atip.ClassPolicySelf, atip.ClassDevice, atip.ClassSystem, atip.ClassOutside, atip.ClassRoot:
			if !harmlessFile(value) {
				s.raise(r)
				s.Call.Resources = append(s.Call.Resources, r)
			}
		}
	}
}

// outputOption names options that by custom say where something is written.
func outputOption(name string) bool {
	switch name {
	case "-o", "--output", "--out", "--output-file", "--outfile", "--outdir", "--outDir", "--out-dir", "--output-dir", "--output-path", "--data-file", "--dest", "--destination", "--target-dir",
		"--directory", "--report", "--report-file", "--junitxml", "--junit-xml", "--log-file", "--logfile", "--write-to", "-coverprofile", "-outputdir":
		return true
	}
	return false
}

// commandTexts are the parts of a word that its tool may hand to a shell: all of it, what
// follows a sign for that, and texts between quotes or slashes.
func commandTexts(w string) []string {
	if len(w) > MaxArg {
		return nil
	}
	out := append([]string{w}, literals(w)...)
	for _, sign := range [...]string{"!", "shell ", "system ", "exec ", "spawn ", "e ", "|", "=", "/", ";", ","} {
		if _, rest, ok := strings.Cut(w, sign); ok {
			out = append(out, strings.TrimSpace(rest))
		}
	}
	if i := strings.LastIndexByte(w, '='); i >= 0 {
		out = append(out, w[i+1:])
	}
	if parts := strings.Split(w, "/"); len(parts) > 3 {
		out = append(out, strings.Join(parts[2:len(parts)-1], "/"))
	}
	return out
}

// tellTale names programs that a word, where a command may stand, can hardly mean anything
// else by. The verbs of other tools (`install`, `halt`, `start`) are not among them.
func tellTale(word string) bool {
	switch filepath.Base(word) {
	case "rm", "rmdir", "unlink", "shred", "dd", "truncate", "mv", "cp", "tee", "chmod", "chown", "find", "cat", "head", "tail", "base64", "xxd", "tar", "curl", "wget",
		"sh", "bash", "dash", "zsh", "ksh", "env", "sudo", "nohup", "xargs", "git", "gh", "kubectl", "aws", "gcloud", "terraform", "docker", "psql", "mysql":
		return true
	}
	return false
}
