package shims

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Query is what identification found out about an executable.
type Query struct {
	Digest    string // lower-case hex SHA-256 of the file, "" if it could not be read
	Effective string // base name of the resolved file
	Invoked   string // base name as typed
	// Borrow is the base name of a root-owned link, in a directory that this user
	// cannot write, which leads to the file: vi for /usr/bin/vim.basic. Its
	// metadata serves if the file's own name has none.
	Borrow   string
	Believed bool // pinned, known digest, distribution or system path
	Verified bool // signature verified
	// NameOnly marks a version manager's shim. All of them have equal bytes, so
	// the digest must not choose metadata.
	NameOnly bool
}

// Found is the answer of a look-up. The zero value is "no metadata".
type Found struct {
	Document   *atip.Document // nil: none
	Raise      *atip.Document // what it says "yes" to joins in
	Provenance atip.Provenance
	Lost       []atip.Provenance // sources seen that did not decide
	Warnings   []string

	raiseFrom atip.Provenance
	name      string // effective name to resolve by
}

// OneTool reports whether no words of the tool name another one. Nothing is read from the words of a tool
// without a document.
func (f Found) OneTool() bool {
	return (f.Document == nil || f.Document.OneTool()) && (f.Raise == nil || f.Raise.OneTool())
}

// Resolve says what argv does according to the document found, joined with what
// the raising document adds. argv[0] is the word that was typed.
func (f Found) Resolve(argv []string, o atip.ResolveOptions) atip.Call {
	if o.InvokedAs == "" && len(argv) > 0 {
		o.InvokedAs = filepath.Base(argv[0])
	}
	if f.name != "" {
		o.Effective = f.name
	}
	if f.Document == nil {
		c := atip.UnknownCall(argv, o.InvokedAs)
		c.Provenance = f.Provenance
		c.Warnings = append(c.Warnings, f.Warnings...)
		return c
	}
	o.Provenance = f.Provenance
	c := f.Document.Resolve(argv, o)
	if f.Raise != nil {
		o.Provenance = f.raiseFrom
		c = atip.JoinDanger(c, f.Raise.Resolve(argv, o))
	}
	c.Warnings = append(c.Warnings, f.Warnings...)
	return c
}

// maxDataDirs bounds how many entries of XDG_DATA_DIRS one look-up opens.
const maxDataDirs = 3

// Dirs are the agent-tools directories. An empty string means that the directory
// does not exist for this caller.
type Dirs struct {
	Config   string   // of the user: overrides
	Data     string   // of the user: shims, native documents
	Managed  string   // of the administrator: overrides
	DataDirs []string // of the system: shims by hash
	Index    string   // of the user's state: where large documents are indexed
	// Own is what Data would be if the caller had not chosen it, else "": what registries demand and approve is
	// kept there, since who could plant an approval would need none.
	Own string
	// CallerSupplied says that the caller chose Data by ATIP_CACHE_DIR. What lies
	// there could have been planted for this very call, so it is rank user.
	CallerSupplied bool
}

// DirsOf puts the directories of the account together with those that the environment names:
// XDG_DATA_DIRS, as far as it leads to the system's own, and ATIP_CACHE_DIR, whose documents
// are believed less. What is "" does not exist.
func DirsOf(config, data, state string, getenv func(string) string) Dirs {
	d := Dirs{Config: config, Data: data, Managed: "/etc/agent-tools"}
	if state != "" {
		d.Index = filepath.Join(state, "index")
	}
	list := getenv("XDG_DATA_DIRS")
	list = cmp.Or(list, "/usr/local/share:/usr/share")
	for dir := range strings.SplitSeq(list, ":") {
		if filepath.IsAbs(dir) && ofSystem(filepath.Clean(dir)) && len(d.DataDirs) < maxDataDirs {
			d.DataDirs = append(d.DataDirs, filepath.Join(dir, "agent-tools"))
		}
	}
	if dir := getenv("ATIP_CACHE_DIR"); filepath.IsAbs(dir) {
		d.Own, d.Data, d.CallerSupplied = d.Data, filepath.Clean(dir), true
	}
	return d
}

// ofSystem reports a directory that no user writes: metadata of the system is believed, and
// the caller of a command may set XDG_DATA_DIRS.
func ofSystem(dir string) bool {
	for _, top := range [...]string{"/usr/", "/opt/", "/nix/", "/gnu/", "/snap/", "/run/current-system/", "/var/lib/flatpak/", "/var/lib/snapd/"} {
		if strings.HasPrefix(dir, top) {
			return true
		}
	}
	return false
}

// applet reports whether a program is another tool when called by another name, so
// that the document of that tool describes it. Only names which the program is
// known to look for count: under any other, xz is xz.
func applet(program, name string) bool {
	switch program {
	case "busybox", "busybox.static", "toybox", "coreutils":
		return true
	case "systemctl":
		switch name {
		case "halt", "init", "poweroff", "reboot", "shutdown", "telinit":
			return true
		}
	case "kmod":
		switch name {
		case "insmod", "lsmod", "modprobe", "rmmod":
			return true
		}
	case "pgrep":
		return name == "pkill"
	case "xz":
		return name == "xzcat" || name == "lzcat"
	case "zstd":
		return name == "zstdcat"
	case "lz4":
		return name == "lz4cat"
	}
	return false
}

// isName reports whether name can be a file name below our directories.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= 200 && !strings.ContainsAny(name, "/\x00")
}

// isDigest reports whether s is a lower-case hexadecimal SHA-256.
func isDigest(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

const maxSettings = 256 << 10

// SettingsError says that a file of settings cannot be used.
type SettingsError struct {
	Code      string
	File      string
	Line, Col int // 1-based, 0 if unknown
	Msg       string
}

func (e *SettingsError) Error() string {
	if e.Line > 0 {
		return e.File + ":" + strconv.Itoa(e.Line) + ":" + strconv.Itoa(e.Col) + ": " + e.Msg
	}
	return e.File + ": " + e.Msg
}

// FaultCode implements fault.Coded.
func (e *SettingsError) FaultCode() string { return e.Code }

// FaultDetails implements fault.Coded.
func (e *SettingsError) FaultDetails() map[string]any {
	return map[string]any{"file": e.File, "line": e.Line, "column": e.Col}
}

// ReadSettings reads a JSON object with comments from a file that nobody else can write.
// It returns nil for a missing file; every error is a SettingsError with this code.
func ReadSettings(file, code string) (*atip.Node, error) {
	raw, err := ReadOwned(file, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var root *atip.Node
	if err == nil {
		root, err = atip.ParseTree(raw, atip.ParseOptions{Comments: true, MaxBytes: maxSettings})
	}
	out := &SettingsError{Code: code, File: file}
	var unsafe *Error
	var doc *atip.DocError
	switch {
	case errors.As(err, &unsafe):
		out.Msg = unsafe.Msg
	case errors.As(err, &doc):
		out.Line, out.Col, out.Msg = doc.Line, doc.Col, doc.Msg
	case err != nil:
		out.Msg = err.Error()
	case root.Kind != atip.KindObject:
		out.Line, out.Col, out.Msg = root.Line, root.Col, "is not an object"
	default:
		return root, nil
	}
	return nil, out
}

// Error says that a metadata file which a person wrote cannot be used. The
// command it describes does not run: its author wanted something said about it.
type Error struct {
	Code      string // E1101 to E1106
	File      string
	Pointer   string // JSON pointer into File, "" if the whole file is meant
	Line, Col int    // 1-based, 0 if unknown
	Msg       string
	Err       error
}

// Error implements error.
func (e *Error) Error() string {
	where := e.File
	if e.Line > 0 {
		where += ":" + strconv.Itoa(e.Line) + ":" + strconv.Itoa(e.Col)
	}
	text := "tool metadata " + where + ": " + e.Msg
	if e.Pointer != "" {
		text += " (at " + e.Pointer + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FaultCode is the stable code of the error.
func (e *Error) FaultCode() string { return e.Code }

// FaultDetails is the position in machine-readable form.
func (e *Error) FaultDetails() map[string]any {
	d := map[string]any{"file": e.File}
	if e.Line > 0 {
		d["line"], d["column"] = e.Line, e.Col
	}
	if e.Pointer != "" {
		d["pointer"] = e.Pointer
	}
	return d
}

// inFile gives a parser's error the file it belongs to.
func inFile(file string, err error) *Error {
	var de *atip.DocError
	if errors.As(err, &de) {
		return &Error{Code: de.Code, File: file, Pointer: de.Pointer, Line: de.Line, Col: de.Col, Msg: de.Msg, Err: err}
	}
	return &Error{Code: errcode.MetadataStructure, File: file, Msg: err.Error(), Err: err}
}
