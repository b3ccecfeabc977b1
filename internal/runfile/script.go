package runfile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
)

// Call is one function made ready to run: what atip-exec is asked for.
type Call struct {
	Interpreter string
	Label       string
	Code        string
	Args        []string
	Errexit     bool
	Pipefail    bool
	Ceiling     []string // what the function may do at most
	Limited     bool     // Ceiling holds; without it policy alone decides
	Timeout     time.Duration
}

// Words is the command line of atip-exec that runs the call; fd is where it finds the code.
func (c *Call) Words(fd int) []string {
	words := []string{"script", "--interpreter", c.Interpreter, "--label", c.Label, "--code-fd", strconv.Itoa(fd)}
	if c.Errexit {
		words = append(words, "--errexit")
	}
	if c.Pipefail {
		words = append(words, "--pipefail")
	}
	if c.Limited {
		list := strings.Join(c.Ceiling, ",")
		list = cmp.Or(list, "none")
		words = append(words, "--ceiling", list)
	}
	if c.Timeout > 0 {
		words = append(words, "--timeout", strconv.FormatInt(c.Timeout.Milliseconds(), 10)+"ms")
	}
	return append(append(words, "--"), c.Args...)
}

// Script makes a call of a function with words that Bind has completed. shellProgram is
// the interpreter of functions that name none.
func (f *File) Script(fn *Function, args []string, shellProgram string) (*Call, error) {
	c := &Call{Interpreter: fn.Program, Label: fn.Name, Args: args, Limited: fn.Limited, Timeout: fn.Timeout}
	c.Ceiling = fn.ceiling()
	if slices.ContainsFunc(c.Ceiling, func(word string) bool { return strings.Contains(word, ",") }) {
		return nil, &Error{Code: errcode.RunfileSyntax, File: fn.File, Line: fn.Line, Message: "@effects: a path with a comma cannot be named", Fix: "rename it"}
	}
	var err error
	if fn.Language != Shell {
		c.Code = f.foreign(fn)
	} else {
		c.Interpreter = cmp.Or(c.Interpreter, shellProgram)
		bash := filepath.Base(c.Interpreter) == "bash"
		c.Errexit, c.Pipefail = !fn.NoErrexit, !fn.NoErrexit && bash
		c.Code, err = f.shellText(fn, args, bash)
	}
	if err == nil && len(c.Code) > MaxScript {
		err = &Error{Code: errcode.RunfileSyntax, File: fn.File, Line: fn.Line, Message: fmt.Sprintf("%s with what it calls is longer than %d bytes", fn.Name, MaxScript), Fix: "move code into a file that it reads"}
	}
	return c, err
}

// ceiling lists what a function may do, with paths from the directory of its file.
func (fn *Function) ceiling() []string {
	var out []string
	listed := len(fn.Effects) > 0
	for _, word := range fn.Effects {
		name, path, named := strings.Cut(word, ":")
		if fn.Safe && (name == "write" || name == "delete") {
			continue
		}
		if named && !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(fn.File), path)
		}
		if named {
			word = name + ":" + path
		}
		out = append(out, word)
	}
	if fn.Safe && !listed {
		out = append(out, "subprocess")
	}
	return out
}

// May reports whether the ceiling of a function lets it have an effect; what has no
// ceiling may have any.
func (fn *Function) May(effect string) bool {
	if !fn.Limited {
		return true
	}
	return slices.ContainsFunc(fn.ceiling(), func(word string) bool {
		name, _, _ := strings.Cut(word, ":")
		return name == effect
	})
}

// shellText is the text of a function with all that it reaches.
func (f *File) shellText(fn *Function, args []string, bash bool) (string, error) {
	t := text{file: f, bash: bash, spelled: map[string]bool{}, done: map[*Function]bool{}}
	main, err := t.define(fn, args)
	if err != nil {
		return "", err
	}
	for len(t.queue) > 0 {
		next := t.queue[0]
		t.queue = t.queue[1:]
		one, err := t.define(next, nil)
		if err != nil {
			return "", err
		}
		t.b.WriteString(one)
	}
	var head strings.Builder
	for _, v := range f.variables(fn) {
		head.WriteString(v[0] + "=" + quote(v[1]) + "\n")
	}
	head.WriteString(t.b.String())
	for _, name := range slices.Sorted(maps.Keys(t.spelled)) {
		head.WriteString(name + "() { " + t.name(f.function(name)) + " \"$@\"; }\n")
	}
	head.WriteString(main)
	head.WriteString(t.name(fn) + " \"$@\"")
	return head.String(), nil
}

// variables are what every body finds set: the directory of its file first.
func (f *File) variables(fn *Function) [][2]string {
	out := [][2]string{{"__RUNFILE_DIR__", filepath.Dir(fn.File)}}
	for _, v := range f.vars {
		out = append(out, [2]string{v.name, v.value})
	}
	return out
}

// text collects the functions that one call needs.
type text struct {
	file    *File
	bash    bool
	b       strings.Builder
	queue   []*Function
	done    map[*Function]bool
	spelled map[string]bool // other spellings of names, as they are called
}

// name is how a function is called in the text: only bash takes a:b and a-b.
func (t *text) name(fn *Function) string {
	if t.bash {
		return fn.Name
	}
	return plainName(fn.Name)
}

// define writes one function. Of the function that is called the number of words is
// known; others look at theirs.
func (t *text) define(fn *Function, args []string) (string, error) {
	t.done[fn] = true
	var b strings.Builder
	b.WriteString(t.name(fn) + "() {\n")
	if fn.Language != Shell {
		b.WriteString(strings.Join(interpreterWords(fn.Program, quote(t.file.foreign(fn))), " ") + " \"$@\"\n}\n")
		return b.String(), nil
	}
	for i := range fn.Params {
		if p := &fn.Params[i]; p.Signature {
			b.WriteString(p.local(i+1, args))
		}
	}
	body, err := t.body(fn)
	if err != nil {
		return "", err
	}
	b.WriteString(body)
	if !strings.HasSuffix(body, "\n") {
		b.WriteString("\n")
	}
	b.WriteString("}\n")
	return b.String(), nil
}

// local sets the variable of a parameter.
func (p *Param) local(n int, args []string) string {
	position := "$" + strconv.Itoa(n)
	if n > 9 {
		position = "${" + strconv.Itoa(n) + "}"
	}
	switch {
	case p.Rest && args != nil:
		return "local " + p.Name + "=" + quote(strings.Join(args[min(n-1, len(args)):], " ")) + "\n"
	case p.Rest:
		return "local " + p.Name + "; " + p.Name + "=$(shift " + strconv.Itoa(n-1) + "; printf '%s' \"$*\")\n"
	case p.HasDefault && args == nil:
		return "local " + p.Name + "=" + quote(p.Default) + "; if [ $# -ge " + strconv.Itoa(n) + " ]; then " + p.Name + "=\"" + position + "\"; fi\n"
	}
	return "local " + p.Name + "=\"" + position + "\"\n"
}

// body is the text of a function; the functions that it calls are queued.
func (t *text) body(fn *Function) (string, error) {
	calls, err := shelltext.Calls(fn.Body, !t.bash)
	if err != nil {
		e := &Error{Code: errcode.RunfileSyntax, File: fn.File, Line: fn.Line, Message: fn.Name + ": " + err.Error(), Fix: "correct the body of the function"}
		var se *shelltext.SyntaxError
		if errors.As(err, &se) {
			e.Message = fn.Name + ": " + se.Msg
			if se.Line > 0 {
				e.Line += se.Line - 1
			}
		}
		return "", e
	}
	out := fn.Body
	if strings.TrimSpace(out) == "" || len(calls) == 0 && onlyComments(out) {
		out += "\n:"
	}
	for i := len(calls) - 1; i >= 0; i-- {
		call := calls[i]
		sibling := t.file.function(call.Name)
		if sibling == nil || !validName(call.Name) {
			continue
		}
		if !t.done[sibling] {
			t.done[sibling] = true
			t.queue = append(t.queue, sibling)
		}
		switch name := t.name(sibling); {
		case name == call.Name:
		case t.bash:
			t.spelled[call.Name] = true
		case strings.HasPrefix(out[min(call.Offset, len(out)):], call.Name):
			out = out[:call.Offset] + name + out[call.Offset+len(call.Name):]
		}
	}
	return out, nil
}

func onlyComments(text string) bool {
	return !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
		line = strings.TrimSpace(line)
		return line != "" && line[0] != '#'
	})
}

// interpreterWords is a command line that runs code, which is a word already.
func interpreterWords(program, code string) []string {
	switch l, _ := languageOf(program); l {
	case Node, Ruby:
		return []string{program, "-e", code, "--"}
	case PowerShell:
		return []string{program, "-NoProfile", "-NonInteractive", "-CommandWithArgs", code}
	}
	return []string{program, "-c", code}
}

// foreign is the code of a function that is not for a shell: variables and parameters,
// converted by their types, then the body.
func (f *File) foreign(fn *Function) string {
	var b strings.Builder
	params := make([]Param, 0, len(fn.Params))
	indexes := make([]int, 0, len(fn.Params))
	for i, p := range fn.Params {
		if p.Signature {
			params, indexes = append(params, p), append(indexes, i)
		}
	}
	each := func(imports string, constant func(name, value string) string, value func(p Param, i int) string) {
		if len(params) > 0 {
			b.WriteString(imports)
		}
		for _, v := range f.variables(fn) {
			b.WriteString(constant(v[0], v[1]) + "\n")
		}
		for i, p := range params {
			b.WriteString(value(p, indexes[i]) + "\n")
		}
	}
	switch fn.Language {
	case Python:
		each("import json as __run_json, sys as __run_sys\n",
			func(name, value string) string { return name + " = " + jsonText(value) },
			func(p Param, i int) string {
				arg := fmt.Sprintf("__run_sys.argv[%d]", i+1)
				if p.HasDefault {
					arg = fmt.Sprintf("(%s if len(__run_sys.argv) > %d else %s)", arg, i+1, jsonText(p.Default))
				}
				if p.Rest {
					return fmt.Sprintf("%s = __run_sys.argv[%d:]", p.Name, i+1)
				}
				return p.Name + " = " + [...]string{arg, "int(" + arg + ")", "float(" + arg + ")", arg + ` == "true"`, "__run_json.loads(" + arg + ")"}[p.Type]
			})
	case Node:
		each("",
			func(name, value string) string { return "const " + name + " = " + jsonText(value) + ";" },
			func(p Param, i int) string {
				arg := fmt.Sprintf("process.argv[%d]", i+1)
				if p.HasDefault {
					arg = "(" + arg + " ?? " + jsonText(p.Default) + ")"
				}
				if p.Rest {
					return fmt.Sprintf("const %s = process.argv.slice(%d);", p.Name, i+1)
				}
				return "const " + p.Name + " = " + [...]string{arg, "Number(" + arg + ")", "Number(" + arg + ")", arg + ` === "true"`, "JSON.parse(" + arg + ")"}[p.Type] + ";"
			})
	case Ruby:
		each("require 'json'\n",
			func(name, value string) string { return strings.ToLower(name) + " = " + rubyText(value) },
			func(p Param, i int) string {
				arg := fmt.Sprintf("ARGV[%d]", i)
				if p.HasDefault {
					// Not ARGV.fetch: fetch is a name by which code is taken to reach the network.
					arg = fmt.Sprintf("(ARGV.size > %d ? %s : %s)", i, arg, rubyText(p.Default))
				}
				if p.Rest {
					return fmt.Sprintf("%s = ARGV.drop(%d)", p.Name, i)
				}
				return p.Name + " = " + [...]string{arg, "Integer(" + arg + ", 10)", "Float(" + arg + ")", arg + ` == "true"`, "JSON.parse(" + arg + ")"}[p.Type]
			})
	case PowerShell:
		each("",
			func(name, value string) string {
				return "$" + name + " = '" + strings.ReplaceAll(value, "'", "''") + "'"
			},
			func(p Param, i int) string {
				arg := fmt.Sprintf("$args[%d]", i)
				if p.HasDefault {
					arg = fmt.Sprintf("$(if ($args.Count -gt %d) { $args[%d] } else { '%s' })", i, i, strings.ReplaceAll(p.Default, "'", "''"))
				}
				if p.Rest {
					return fmt.Sprintf("$%s = @($args | Select-Object -Skip %d)", p.Name, i)
				}
				return "$" + p.Name + " = " + [...]string{arg, "[long]" + arg, "[double]" + arg, arg + " -eq 'true'", arg + " | ConvertFrom-Json"}[p.Type]
			})
	}
	b.WriteString(fn.Body)
	return b.String()
}

// rubyText is a string literal of Ruby in which nothing is replaced.
func rubyText(s string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "'", `\'`) + "'"
}

// quote makes one shell word of any text.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
