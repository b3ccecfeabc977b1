package tools

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/completions"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
)

// manVerb writes one page for each program, from the table of verbs and flags, and one for each
// file format, from the documents.
func manVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) != 1 {
		return 0, fault.New(errcode.Arguments, "man needs a directory").WithFix("name one", "atip man man1")
	}
	dir := v.Rest[0]
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fault.New(errcode.NoInputFile, err.Error()).With("directory", dir)
	}
	var files []string
	pages := map[string]string{"atip-exec.1": manPage("atip-exec"), "atip.1": manPage("atip")}
	for _, p := range formatPages() {
		text, err := manFormat(p)
		if err != nil {
			return 0, err
		}
		pages[p.name+".5"] = text
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		// A directory of one section, such as man1, gets that section.
		if of, ok := strings.CutPrefix(filepath.Base(dir), "man"); ok && (of == "1" || of == "5") && !strings.HasSuffix(name, "."+of) {
			continue
		}
		file := filepath.Join(dir, name)
		err := approve.Replace(file, []byte(pages[name]))
		if err == nil {
			err = os.Chmod(file, 0o644)
		}
		if err != nil {
			return 0, fault.New(errcode.OutputWrite, file+": "+err.Error())
		}
		files = append(files, file)
	}
	return 0, c.Answer(map[string]any{"kind": "atip-exec.man/1", "files": files}, strings.Join(files, "\n")+"\n")
}

// roff is text in which nothing is a request or an escape.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", "").Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

func manPage(program string) string {
	var b strings.Builder
	title := strings.ToUpper(program)
	root := cli.Root()
	summary := root.Summary
	if program == "atip" {
		summary = "everything beside the running of commands by atip-exec"
	}
	b.WriteString(".TH " + roff(title) + " 1 \"\" \"atip-exec " + roff(cli.Version) + "\"\n.SH NAME\n" + roff(program) + " \\- " + roff(summary) + "\n.SH SYNOPSIS\n")
	if program == "atip-exec" {
		b.WriteString(".B atip\\-exec\n[flags] [\\-\\-] CMD [ARGS...]\n.br\n.B atip\\-exec\n\\-c STRING [NAME ARGS...]\n.br\n")
	}
	b.WriteString(".B " + roff(program) + "\nVERB ...\n")
	if program == "atip-exec" {
		b.WriteString(".SH FLAGS\n")
		manFlags(&b, root.Flags)
	}
	b.WriteString(".SH VERBS\n")
	for _, s := range cli.Specs() {
		if s.Verb == "" || program == "atip" && s.Program != "atip" {
			continue
		}
		b.WriteString(".SS " + roff(program+" "+s.Verb) + "\n" + roff(s.Summary) + "\n")
		if program != s.Program {
			b.WriteString(".br\nSee atip(1).\n")
			continue
		}
		if s.Long != "" {
			b.WriteString(".PP\n" + roff(s.Long) + "\n")
		}
		manFlags(&b, s.Flags)
		for _, e := range s.Examples {
			b.WriteString(".PP\n.nf\n" + roff(e.Line) + "\n.fi\n")
		}
	}
	if program == "atip-exec" {
		for _, topic := range []string{"environment", "files", "exit-codes"} {
			text, _ := cli.Topic(topic)
			b.WriteString(".SH " + strings.ToUpper(strings.ReplaceAll(topic, "-", " ")) + "\n.nf\n" + roff(text) + ".fi\n")
		}
		b.WriteString(".SH SEE ALSO\natip(1)\n")
	} else {
		b.WriteString(".SH SEE ALSO\natip\\-exec(1)\n")
	}
	return b.String()
}

func manFlags(b *strings.Builder, flags []cli.Flag) {
	for _, f := range flags {
		head := "\\fB\\-\\-" + roff(f.Name) + "\\fR"
		if f.Short != 0 {
			head = "\\fB\\-" + string(f.Short) + "\\fR, " + head
		}
		if completions.Valued(f) {
			value := f.Value
			if f.Kind == cli.Enum {
				value = strings.Join(f.Enum, "|")
			}
			head += " \\fI" + roff(value) + "\\fR"
		}
		help := f.Help
		if f.Env != "" {
			help += " [$" + f.Env + "]"
		}
		b.WriteString(".TP\n" + head + "\n" + roff(help) + "\n")
	}
}
