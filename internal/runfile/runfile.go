// Package runfile reads Runfiles: functions in shell, Python, Node, Ruby or PowerShell
// with the comments that describe them to people and agents (run RFC 003). Reading a
// file runs nothing. Arguments are bound as words of the interpreter's command line; no
// text is ever made of them.
package runfile

import (
	"fmt"
	"maps"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Limits of what is read.
const (
	MaxFile      = 1 << 20 // bytes of one file
	MaxFunctions = 1000
	MaxDepth     = 16     // files that source one another
	MaxScript    = 120000 // bytes handed to an interpreter as one word: below MAX_ARG_STRLEN
)

// Error is what is wrong with a Runfile or a call of one of its functions.
type Error struct {
	Code    string // E1201 to E1206
	File    string
	Line    int
	Message string
	Fix     string
	Example string
	Details map[string]any
}

// Error implements error.
func (e *Error) Error() string {
	switch {
	case e.File != "" && e.Line > 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
	case e.File != "":
		return e.File + ": " + e.Message
	}
	return e.Message
}

// FaultCode implements fault.Coded.
func (e *Error) FaultCode() string { return e.Code }

// FaultDetails implements fault.Coded.
func (e *Error) FaultDetails() map[string]any {
	d := map[string]any{}
	maps.Copy(d, e.Details)
	if e.File != "" {
		d["file"] = e.File
	}
	if e.Line > 0 {
		d["line"] = e.Line
	}
	return d
}

// FaultFix implements fault.Fixer.
func (e *Error) FaultFix() (fix, example string) { return e.Fix, e.Example }

// Type is how the text of an argument is checked, and converted where the language has
// types of its own.
type Type uint8

// Types of parameters. The zero value takes any text.
const (
	String Type = iota
	Integer
	Number
	Boolean
	JSONObject
)

// typeByName finds a type by the names that a signature or @arg may use.
func typeByName(name string) (Type, bool) {
	switch name {
	case "str", "string":
		return String, true
	case "int", "integer":
		return Integer, true
	case "float", "number":
		return Number, true
	case "bool", "boolean":
		return Boolean, true
	case "obj", "object", "dict":
		return JSONObject, true
	}
	return String, false
}

// String is the name of the type in JSON Schema.
func (t Type) String() string {
	return [...]string{"string", "integer", "number", "boolean", "object"}[t]
}

// Param is one parameter of a function.
type Param struct {
	Name       string
	Type       Type
	Default    string // literal text
	HasDefault bool
	Rest       bool   // takes all words that are left
	Desc       string // for an agent
	Signature  bool   // it stands in the signature, so the body has a variable of its name
}

// Language is who reads the body of a function.
type Language uint8

// Languages of bodies.
const (
	Shell Language = iota
	Python
	Node
	Ruby
	PowerShell
)

// Function is one function of a Runfile.
type Function struct {
	Name      string
	File      string // where it is written, absolute
	Line      int
	Params    []Param
	Desc      string
	Body      string
	Program   string   // of @shell or the shebang, "" for the default shell
	Language  Language // of Body
	NoErrexit bool
	Effects   []string // of @effects
	Limited   bool     // @effects or @safe stands there
	Safe      bool
	Timeout   time.Duration // 0 for none
}

// File is a Runfile with all that it sources.
type File struct {
	Path         string // of the first file
	Instructions string
	Functions    []*Function // in their order, one of each name
	Warnings     []string

	vars []variable
}

// variable is a VAR=value of the top level.
type variable struct{ name, value, dir string }

// Find looks a function up by the words of a call: the longest of `a b c` that names one,
// as a:b:c, a:b, a; a dash is as good as an underscore. It returns the words that are
// left, which are arguments.
func (f *File) Find(words []string) (*Function, []string, error) {
	name := ""
	var found *Function
	rest := words
	for i, word := range words {
		if name += word; !validName(word) || i >= 16 {
			break
		}
		if fn := f.function(name); fn != nil {
			found, rest = fn, words[i+1:]
		}
		name += ":"
	}
	if found != nil {
		return found, rest, nil
	}
	first := ""
	if len(words) > 0 {
		first = words[0]
	}
	e := &Error{Code: errcode.NoFunction, File: f.Path, Message: fmt.Sprintf("there is no function %q", first), Fix: "`atip run --list` shows the functions", Example: "atip run --list"}
	return nil, nil, e
}

// function finds a function by its name or another spelling of it.
func (f *File) function(name string) *Function {
	var near *Function
	key := plainName(name)
	for _, fn := range f.Functions {
		if fn.Name == name {
			return fn
		}
		if plainName(fn.Name) == key {
			near = fn
		}
	}
	return near
}

// plainName is a name with what no shell but bash takes replaced: a:b and a-b are a_b.
func plainName(name string) string {
	out := []byte(name)
	for i, c := range out {
		if c == ':' || c == '-' {
			out[i] = '_'
		}
	}
	return string(out)
}

func validName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !nameByte(s[i], i > 0) {
			return false
		}
	}
	return s != ""
}

func nameByte(c byte, later bool) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || later && (c >= '0' && c <= '9' || c == ':' || c == '-')
}
