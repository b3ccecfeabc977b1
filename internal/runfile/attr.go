package runfile

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// attributes is what the comments above a function say.
type attributes struct {
	desc      string
	args      []argDoc
	os        string
	shell     string
	noerrexit bool
	effects   []string
	limited   bool
	safe      bool
	timeout   time.Duration
}

// argDoc is one @arg.
type argDoc struct {
	index int // from 1; 0 if it is not said
	name  string
	typ   Type
	typed bool
	text  string
}

// attribute reads one comment line into a; instructions belong to the file.
func (p *parser) attribute(a *attributes, line string) error {
	text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
	if !strings.HasPrefix(text, "@") {
		return nil
	}
	key, value, _ := strings.Cut(text[1:], " ")
	key, tail, _ := strings.Cut(key, "\t")
	value = strings.TrimSpace(tail + " " + value)
	switch key {
	case "desc":
		a.desc = unquote(value)
	case "instructions":
		p.file.Instructions = unquote(value)
	case "arg":
		doc, err := p.argDoc(value)
		if err != nil {
			return err
		}
		a.args = append(a.args, doc)
	case "os":
		switch value {
		case "windows", "linux", "macos", "unix":
			a.os = value
		default:
			return p.bad(fmt.Sprintf("@os: %q is not windows, linux, macos or unix", value), "choose one of them", "# @os linux")
		}
	case "shell":
		if _, ok := languageOf(value); !ok {
			return p.bad(fmt.Sprintf("@shell: %q is not python, python3, node, ruby, pwsh, bash or sh", value), "choose one of them", "# @shell python3")
		}
		a.shell = value
	case "noerrexit":
		a.noerrexit = true
	case "effects":
		a.limited = true
		for _, word := range strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' }) {
			if !knownEffect(word) {
				return p.bad(fmt.Sprintf("@effects: %q is not none, network, write[:PATH], delete[:PATH], subprocess, destructive, irreversible or billable", word), "list what the function may do", "# @effects network write:dist")
			}
			a.effects = append(a.effects, word)
		}
	case "safe":
		a.safe, a.limited = true, true
	case "timeout":
		d, err := duration(value)
		if err != nil {
			return p.bad(fmt.Sprintf("@timeout: %q %v", value, err), "write a number and a unit", "# @timeout 5m")
		}
		a.timeout = d
	}
	return nil
}

// argDoc reads `[n:]name [type] text`.
func (p *parser) argDoc(value string) (argDoc, error) {
	word, text, _ := strings.Cut(value, " ")
	var d argDoc
	if number, name, ok := strings.Cut(word, ":"); ok {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > 99 {
			return d, p.bad(fmt.Sprintf("@arg: %q is not the position of an argument", number), "count from 1", "# @arg 1:service string The name of the service")
		}
		d.index, word = n, name
	}
	if d.name = word; !validVariable(word) {
		return d, p.bad(fmt.Sprintf("@arg: %q is not the name of a parameter", word), "use letters, digits and underscores", "# @arg 1:service string The name of the service")
	}
	text = strings.TrimSpace(text)
	if name, rest, _ := strings.Cut(text, " "); name != "" {
		if t, ok := typeByName(name); ok {
			d.typ, d.typed, text = t, true, strings.TrimSpace(rest)
		}
	}
	d.text = unquote(text)
	return d, nil
}

// apply gives a function what its comments say.
func (a *attributes) apply(fn *Function) {
	fn.Desc, fn.NoErrexit, fn.Effects, fn.Limited, fn.Safe, fn.Timeout = a.desc, a.noerrexit, a.effects, a.limited, a.safe, a.timeout
	next := 0
	for _, d := range a.args {
		i := d.index - 1
		if i < 0 {
			if i = paramIndex(fn.Params, d.name); i < 0 {
				i = next
			}
		}
		next = i + 1
		for len(fn.Params) <= i {
			fn.Params = append(fn.Params, Param{Name: "arg" + strconv.Itoa(len(fn.Params)+1)})
		}
		param := &fn.Params[i]
		param.Desc = d.text
		if !param.Signature {
			param.Name, param.Type = d.name, d.typ
		} else if param.Type == String && d.typed {
			param.Type = d.typ // the signature names none
		}
	}
}

func paramIndex(params []Param, name string) int {
	return slices.IndexFunc(params, func(p Param) bool { return p.Name == name })
}

// here reports whether the function exists on this system.
func (a *attributes) here() bool {
	switch a.os {
	case "windows", "linux":
		return runtime.GOOS == a.os
	case "macos":
		return runtime.GOOS == "darwin"
	case "unix":
		return runtime.GOOS != "windows" && runtime.GOOS != "plan9"
	}
	return true
}

// languageOf names the language of an interpreter.
func languageOf(program string) (Language, bool) {
	if i := strings.LastIndexByte(program, '/'); i >= 0 {
		program = program[i+1:]
	}
	switch program {
	case "python", "python3":
		return Python, true
	case "node", "nodejs":
		return Node, true
	case "ruby":
		return Ruby, true
	case "pwsh", "powershell":
		return PowerShell, true
	case "bash", "sh", "dash", "zsh", "ksh":
		return Shell, true
	}
	if strings.HasPrefix(program, "python3.") {
		return Python, true
	}
	return Shell, false
}

func knownEffect(word string) bool {
	name, path, named := strings.Cut(word, ":")
	switch name {
	case "write", "delete":
		return !named || path != ""
	case "none", "network", "subprocess", "destructive", "irreversible", "billable":
		return !named
	}
	return false
}

func duration(text string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		text = strconv.FormatFloat(n, 'f', -1, 64) + "s"
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("is not a duration")
	case d <= 0 || d > 24*time.Hour:
		return 0, fmt.Errorf("is not more than zero and at most 24h")
	}
	return d, nil
}

// unquote takes one pair of quotes off.
func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

func validVariable(s string) bool {
	return validName(s) && strings.IndexByte(s, ':') < 0 && strings.IndexByte(s, '-') < 0
}
