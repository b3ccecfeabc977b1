package shims

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
)

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
