package shims

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/shims/builtin"
)

// maxFile is the most that is read of a local document; a larger one is refused
// before any of it is read.
const maxFile = 4 << 20

// Lookup asks the sources in order. An error means that a file which a person
// wrote is broken or unsafe, and that the command must not run. A broken document
// that was fetched or probed makes the tool unknown instead, with a warning.
//
// No directory is listed and at most twelve files are opened, so the time does
// not depend on how many documents are installed.
func Lookup(q Query, d Dirs) (Found, error) {
	l := lookup{q: q, d: d}
	l.found.name = q.Effective
	l.found.Provenance = atip.Provenance{Channel: "none", Binding: "none", Source: "none"}
	if q.Digest != "" && !q.NameOnly && isDigest(q.Digest) {
		for _, tier := range [...]func(*lookup) (bool, error){(*lookup).overrides, (*lookup).native, (*lookup).byHash} {
			if done, err := tier(&l); err != nil {
				return Found{}, err
			} else if done {
				if e, ok := builtin.Find(q.Effective); ok {
					l.found.Lost = append(l.found.Lost, l.ofBuiltin(e))
				}
				l.last()
				return l.found, nil
			}
		}
	}
	// A registry is asked here once it exists: its answers are stored under
	// shims/sha256 and found by byHash, so this function opens no connection.
	if err := l.byName(); err != nil {
		return Found{}, err
	}
	l.last()
	return l.found, nil
}

type lookup struct {
	q     Query
	d     Dirs
	found Found
	// planted is a native document without our side file: it counts as written
	// by the user, below the builtin table.
	planted     *atip.Document
	plantedFrom atip.Provenance
	// inferred is a generated document about these bytes. It knows danger by words
	// only, so that every other source goes first (tier 9).
	inferred     *atip.Document
	inferredFrom atip.Provenance
}

// setAside keeps an inferred document for the end.
func (l *lookup) setAside(doc *atip.Document, from atip.Provenance) bool {
	if !doc.Inferred() {
		return false
	}
	if l.inferred == nil {
		l.inferred, l.inferredFrom = doc, from
	}
	return true
}

// last takes the inferred document if there is no other.
func (l *lookup) last() {
	switch {
	case l.inferred == nil:
	case l.found.Document == nil && l.found.Warnings == nil:
		l.found.Document, l.found.Provenance = l.inferred, l.inferredFrom
	default:
		l.found.Lost = append(l.found.Lost, l.inferredFrom)
	}
}

// overrides asks the administrator's and then the user's override (tiers 1, 2).
func (l *lookup) overrides() (bool, error) {
	for _, t := range [...]struct {
		dir string
		cap atip.Rank
	}{{l.d.Managed, atip.Vendor}, {l.d.Config, atip.Org}} {
		if t.dir == "" {
			continue
		}
		f := file{here: true, path: t.dir + "/overrides/sha256/" + l.q.Digest + ".json", comments: true, hash: l.q.Digest}
		if done, err := l.take(f, "override", "hash", t.cap); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// native asks for the tool's own answer to --agent (tier 3).
func (l *lookup) native() (bool, error) {
	if l.d.Data == "" {
		return false, nil
	}
	top := atip.User
	switch {
	case l.d.CallerSupplied:
	case l.q.Verified:
		top = atip.Vendor
	case l.q.Believed:
		top = atip.Org
	}
	paths := []string{l.d.Data + "/tools/sha256-" + l.q.Digest + ".json"}
	if isName(l.q.Effective) {
		paths = append(paths, l.d.Data+"/tools/"+l.q.Effective+"-"+l.q.Digest+".json")
	}
	for _, path := range paths {
		f := file{here: true, path: path, hash: l.q.Digest}
		doc, err := f.document(l.d.Index)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		meta := f.meta()
		if err != nil {
			return l.broken(f.path, err, meta.exists)
		}
		p := provenance(doc, &f, "native", "hash", top)
		p.Stale = meta.stale
		if l.setAside(doc, p) {
			continue
		}
		if !meta.intact {
			p.Channel, p.Rank = "user", min(p.Rank, atip.User)
			l.planted, l.plantedFrom = doc, p
			return false, nil
		}
		l.found.Document, l.found.Provenance = doc, p
		return true, l.raiseNative()
	}
	return false, nil
}

// raiseNative joins in the administrator's shim for the same digest: a native
// document is the tool speaking about itself.
func (l *lookup) raiseNative() error {
	native := l.found
	done, err := l.byHash()
	raise := l.found
	l.found = native
	if err != nil || !done {
		return err
	}
	if raise.Document != nil && raise.Provenance.Rank >= atip.Org {
		l.found.Raise, l.found.raiseFrom = raise.Document, raise.Provenance
	}
	l.found.Lost = append(l.found.Lost, raise.Provenance)
	return nil
}

// byHash asks for a shim of exactly this file (tier 4). A signature beside it
// would raise its rank; unsigned it is the user's, or the administrator's if
// nobody but root can write it.
func (l *lookup) byHash() (bool, error) {
	name := "/shims/sha256/" + l.q.Digest + ".json"
	dirs := make([]string, 0, 1+maxDataDirs)
	if l.d.Data != "" {
		dirs = append(dirs, l.d.Data)
	}
	dirs = append(dirs, l.d.DataDirs[:min(len(l.d.DataDirs), maxDataDirs)]...)
	for i, dir := range dirs {
		f := file{here: true, path: dir + name, hash: l.q.Digest, hashNeeded: true}
		doc, err := f.document(l.d.Index)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		meta := f.meta()
		if err != nil {
			return l.broken(f.path, err, meta.exists)
		}
		top, own := atip.User, i == 0 && l.d.Data != ""
		if !own && f.rootOwned && !l.d.CallerSupplied {
			top = atip.Org
		}
		p := provenance(doc, &f, "shim", "hash", top)
		p.Stale = meta.stale
		if l.setAside(doc, p) {
			continue
		}
		l.found.Document, l.found.Provenance = doc, p
		return true, nil
	}
	return false, nil
}

// byName asks the embedded table and the user's documents by name (tiers 6, 7).
func (l *lookup) byName() error {
	if err := l.builtin(); err != nil {
		return err
	}
	user, from := l.planted, l.plantedFrom
	if l.d.Data != "" && isName(l.found.name) {
		for _, f := range [...]file{
			{here: true, path: l.d.Data + "/shims/" + l.found.name + ".json", comments: true, byName: true, hash: l.q.Digest},
			{here: true, path: l.d.Data + "/tools/" + l.found.name + ".json", byName: true, hash: l.q.Digest},
		} {
			doc, err := f.document(l.d.Index)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errOtherHash) {
				continue
			}
			if err != nil {
				return asError(f.path, err)
			}
			user, from = doc, provenance(doc, &f, "user", "name", atip.User)
			break
		}
	}
	switch {
	case user == nil:
	case l.found.Document == nil:
		l.found.Document, l.found.Provenance = user, from
	default:
		l.found.Raise, l.found.raiseFrom = user, from
		l.found.Lost = append(l.found.Lost, from)
	}
	return nil
}

// builtin asks the embedded table. A file whose own name is unknown there may be
// one program with many names, or be reached by a link that the administrator made.
func (l *lookup) builtin() error {
	name := l.q.Effective
	if l.q.Invoked != name && applet(name, l.q.Invoked) {
		if _, ok := builtin.Find(l.q.Invoked); ok {
			name = l.q.Invoked
		}
	}
	e, ok := builtin.Find(name)
	if !ok && l.q.Borrow != "" && l.q.Borrow != name {
		if e, ok = builtin.Find(l.q.Borrow); ok {
			name = l.q.Borrow
		}
	}
	if !ok {
		return nil
	}
	l.found.name = name
	doc, err := e.Parse()
	if err != nil {
		return inFile("builtin:"+e.Name, err)
	}
	l.found.Document, l.found.Provenance = doc, l.ofBuiltin(e)
	return nil
}

// ofBuiltin believes a curated document about a program only as far as the file is
// believed to be that program.
func (l *lookup) ofBuiltin(e builtin.Entry) atip.Provenance {
	rank := atip.User
	if l.q.Verified || l.q.Believed {
		rank = atip.Org
	}
	return atip.Provenance{Channel: "builtin", Rank: rank, Binding: "name", Source: "builtin:" + e.Name, Digest: e.Digest}
}

// take reads f as the deciding source if it exists. Its author is a person, so a
// broken file is an error.
func (l *lookup) take(f file, channel, binding string, top atip.Rank) (bool, error) {
	doc, err := f.document(l.d.Index)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, asError(f.path, err)
	}
	p := provenance(doc, &f, channel, binding, top)
	if l.setAside(doc, p) {
		return false, nil
	}
	l.found.Document, l.found.Provenance = doc, p
	return true, nil
}

// broken ends the search: no lower source is asked about a tool whose document
// exists. A person's mistake is an error; a fetched document is nobody's, so the
// tool becomes unknown.
func (l *lookup) broken(path string, err error, fetched bool) (bool, error) {
	if !fetched {
		return false, asError(path, err)
	}
	w := asError(path, err).Error()
	l.found.Document = nil
	l.found.Provenance = atip.Provenance{Channel: "none", Binding: "none", Source: "none", Warnings: []string{w}}
	l.found.Warnings = append(l.found.Warnings, w)
	return true, nil
}

func asError(path string, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return inFile(path, err)
}

// provenance bounds what a document declares about itself by what its place allows.
func provenance(doc *atip.Document, f *file, channel, binding string, top atip.Rank) atip.Provenance {
	rank := top
	if declared, ok := doc.DeclaredSource(); ok {
		rank = min(rank, declared)
	}
	if doc.Inferred() {
		channel, rank = "inferred", atip.Inferred
	}
	return atip.Provenance{Channel: channel, Rank: rank, Binding: binding, Source: channel + ":" + f.path, Digest: f.sum()}
}

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

// errOtherHash says that a by-name document was written for another file.
var errOtherHash = errors.New("the document is for another file")

// file is one place where a document may be.
type file struct {
	path       string
	comments   bool   // JSON with comments: only where a person edits and nothing is signed
	hash       string // digest of the executable
	hashNeeded bool   // the document must name that digest
	byName     bool   // a document that names another digest is absent, not wrong
	here       bool   // the document is to be used on this machine

	raw       []byte // nil if the document is read by its index
	indexed   *atip.Document
	digest    string // of the bytes, once asked for
	rootOwned bool
	from      *safeFile // to be indexed in
	indexes   string    // this directory
}

// read opens the document by the index that indexes holds of it, or reads all of it.
func (f *file) read(indexes string) error {
	from, err := openSafe(f.path, maxFile)
	if err != nil {
		return err
	}
	f.rootOwned = from.rootOwned
	if f.indexed, f.digest = from.indexed(indexes); f.indexed != nil {
		return nil
	}
	f.raw, err = from.all()
	f.from, f.indexes = from, indexes
	if err != nil {
		f.close()
	}
	return err
}

func (f *file) close() {
	if f.from != nil {
		f.from.Close()
		f.from = nil
	}
}

// document reads the file and parses it.
func (f *file) document(indexes string) (*atip.Document, error) {
	if err := f.read(indexes); err != nil {
		return nil, err
	}
	return f.parse()
}

// sum is the hex SHA-256 of the document's bytes.
func (f *file) sum() string {
	if f.digest == "" {
		sum := sha256.Sum256(f.raw)
		f.digest = hex.EncodeToString(sum[:])
	}
	return f.digest
}

func (f *file) parse() (*atip.Document, error) {
	defer f.close()
	doc := f.indexed
	if doc == nil {
		var err error
		if doc, err = atip.Parse(f.raw, atip.ParseOptions{Comments: f.comments, MaxBytes: maxFile}); err != nil {
			return nil, inFile(f.path, err)
		}
		if f.from != nil {
			f.from.keepIndex(f.indexes, f.raw, f.comments, time.Now())
		}
	}
	switch h := doc.BinaryHash(); {
	case h == f.hash && h != "":
	case h == "" && !f.hashNeeded:
	case f.byName:
		return nil, errOtherHash
	case h == "":
		return nil, &Error{Code: errcode.MetadataBinary, File: f.path, Pointer: "/binary/hash", Msg: "binary.hash is missing: the document does not say which file it is for"}
	default:
		return nil, &Error{Code: errcode.MetadataBinary, File: f.path, Pointer: "/binary/hash", Msg: "binary.hash " + h + " is not the digest in the file's name"}
	}
	if f.here {
		if p := doc.Platform(); !runsHere(p) {
			return nil, &Error{Code: errcode.MetadataBinary, File: f.path, Pointer: "/binary/platform", Msg: "binary.platform " + strconv.Quote(p) + " is not " + runtime.GOOS + "-" + runtime.GOARCH}
		}
	}
	return doc, nil
}

// runsHere compares a platform such as linux-amd64 with this one. A digest says which
// file is meant better than any label, so a word that we do not know is no objection;
// one that we know and that names another machine means that somebody mixed them up.
func runsHere(platform string) bool {
	system, arch, _ := strings.Cut(strings.ToLower(platform), "-")
	switch system {
	case "macos":
		system = "darwin"
	case "win", "win32", "win64":
		system = "windows"
	}
	switch arch {
	case "x86_64", "x64":
		arch = "amd64"
	case "aarch64":
		arch = "arm64"
	case "i386", "i686", "x86":
		arch = "386"
	}
	switch system {
	case "linux", "darwin", "windows", "freebsd", "openbsd", "netbsd":
		if system != runtime.GOOS {
			return false
		}
	}
	switch arch {
	case "amd64", "arm64", "386", "arm", "riscv64", "ppc64le", "s390x":
		return arch == runtime.GOARCH
	}
	return true
}

// meta is what the side file says about a fetched or probed document.
type meta struct {
	exists bool // somebody fetched the document
	intact bool // and it still has the bytes that arrived
	stale  bool
}

// meta reads the side file of the document. Cache facts stand beside it, never
// in it, because rewriting a signed document breaks its signature.
func (f *file) meta() meta {
	side, _, err := readSafe(f.path + ".meta")
	if err != nil || len(side) > 64<<10 {
		return meta{}
	}
	var m struct {
		V       int       `json:"v"`
		SHA256  string    `json:"sha256"`
		Expires time.Time `json:"expires"`
	}
	if json.Unmarshal(side, &m) != nil || m.V != 1 {
		return meta{}
	}
	return meta{
		exists: true,
		intact: m.SHA256 == f.sum(),
		stale:  !m.Expires.IsZero() && time.Now().After(m.Expires),
	}
}
