package distro

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/atip-dev/atip-exec/trust"
)

// image is a file system of a distribution, in a directory.
type image struct {
	t   *testing.T
	dir string
}

func (m image) put(path string, text []byte) {
	m.t.Helper()
	full := filepath.Join(m.dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(full, text, 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m image) ask(path string) Answer {
	raw, _ := os.ReadFile(filepath.Join(m.dir, path))
	sum := sha256.Sum256(raw)
	return Root{Dir: m.dir, Owned: func(string) bool { return true }}.Ask(path, hex.EncodeToString(sum[:]))
}

func md5hex(text string) string { sum := md5.Sum([]byte(text)); return hex.EncodeToString(sum[:]) }

func TestDpkg(t *testing.T) {
	m := image{t, t.TempDir()}
	for path, text := range map[string]string{"/usr/bin/id": "id", "/usr/bin/ls": "ls", "/usr/sbin/diverted.distrib": "old", "/usr/sbin/diverted": "new", "/usr/bin/own": "mine", "/usr/bin/conf": "changed", "/usr/bin/nosum": "x"} {
		m.put(path, []byte(text))
	}
	// The package ships /bin/id; the merge of /bin into /usr/bin moved it.
	m.put(dpkgInfo+"/coreutils.list", []byte("/.\n/bin\n/bin/id\n/usr/bin/ls\n/usr/bin/conf\n/usr/bin/nosum\n"))
	m.put(dpkgInfo+"/coreutils.md5sums", fmt.Appendf(nil, "%s  bin/id\n%s  usr/bin/ls\n%s  usr/bin/conf\n", md5hex("id"), md5hex("other"), md5hex("as shipped")))
	m.put(dpkgInfo+"/coreutils.conffiles", []byte("/usr/bin/conf\n"))
	m.put(dpkgInfo+"/daemon.list", []byte("/usr/sbin/diverted\n"))
	m.put(dpkgInfo+"/daemon.md5sums", fmt.Appendf(nil, "%s  usr/sbin/diverted\n", md5hex("old")))
	m.put(dpkgInfo+"/wrapper:amd64.list", []byte("/usr/sbin/diverted\n"))
	m.put(dpkgInfo+"/wrapper:amd64.md5sums", fmt.Appendf(nil, "%s  usr/sbin/diverted\n", md5hex("new")))
	m.put("/var/lib/dpkg/diversions", []byte("/usr/sbin/diverted\n/usr/sbin/diverted.distrib\nwrapper\n"))
	for path, want := range map[string]Answer{
		"/usr/bin/id":                {Distro: trust.DistroMatch, Package: "coreutils"},
		"/usr/bin/ls":                {Distro: trust.DistroMismatch, Package: "coreutils"},
		"/usr/bin/conf":              {Package: "coreutils"},
		"/usr/bin/nosum":             {Package: "coreutils"},
		"/usr/bin/own":               {},
		"/usr/sbin/diverted":         {Distro: trust.DistroMatch, Package: "wrapper:amd64"},
		"/usr/sbin/diverted.distrib": {Distro: trust.DistroMatch, Package: "daemon"},
	} {
		if got := m.ask(path); got.Distro != want.Distro || got.Package != want.Package {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	m.put("/usr/bin/id", []byte("iD"))
	if got := m.ask("/usr/bin/id"); got.Distro != trust.DistroMismatch {
		t.Errorf("a byte changed: %+v", got)
	}
	if got := (Root{Dir: m.dir, Owned: func(string) bool { return true }}).Ask("/usr/bin/id", hex.EncodeToString(make([]byte, 32))); got.Distro != trust.DistroUnknown {
		t.Errorf("another file than the one judged: %+v", got)
	}
	if got := (Root{Dir: m.dir, Owned: func(string) bool { return false }}).Ask("/usr/bin/id", ""); got.Distro != trust.DistroUnknown {
		t.Errorf("a database that others can write: %+v", got)
	}
}

func TestApk(t *testing.T) {
	m := image{t, t.TempDir()}
	m.put("/usr/bin/jq", []byte("jq"))
	m.put("/bin/bad", []byte("bad"))
	good := sha1.Sum([]byte("jq"))
	m.put("/lib/apk/db/installed", fmt.Appendf(nil, "C:Q1x\nP:jq\nV:1\nF:usr\nF:usr/bin\nR:jq\na:0:0:755\nZ:Q1%s\n\nP:busybox\nF:bin\nR:bad\nZ:Q1%s\n", base64.StdEncoding.EncodeToString(good[:]), base64.StdEncoding.EncodeToString(good[:])))
	if got := m.ask("/usr/bin/jq"); got.Distro != trust.DistroMatch || got.Package != "jq" {
		t.Errorf("%+v", got)
	}
	if got := m.ask("/bin/bad"); got.Distro != trust.DistroMismatch || got.Package != "busybox" {
		t.Errorf("%+v", got)
	}
	if got := m.ask("/usr/bin/none"); got.Distro != trust.DistroUnknown {
		t.Errorf("%+v", got)
	}
}

func TestPacman(t *testing.T) {
	m := image{t, t.TempDir()}
	m.put("/usr/bin/jq", []byte("jq"))
	sum := sha256.Sum256([]byte("jq"))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprintf(z, "#mtree\n/set type=file uid=0 gid=0 mode=644\n./usr/bin/jq time=1.0 mode=755 size=2 md5digest=%s sha256digest=%x\n", md5hex("jq"), sum)
	z.Close()
	m.put(pacmanLocal+"/jq-1.7-1/files", []byte("%FILES%\nusr/\nusr/bin/\nusr/bin/jq\n\n%BACKUP%\netc/jq.conf\tabc\n"))
	m.put(pacmanLocal+"/jq-1.7-1/mtree", packed.Bytes())
	if got := m.ask("/usr/bin/jq"); got.Distro != trust.DistroMatch || got.Package != "jq-1.7-1" {
		t.Errorf("%+v", got)
	}
	m.put("/usr/bin/jq", []byte("jQ"))
	if got := m.ask("/usr/bin/jq"); got.Distro != trust.DistroMismatch {
		t.Errorf("%+v", got)
	}
}

func TestRPM(t *testing.T) {
	for out, want := range map[string]trust.Distro{
		"":                                  trust.DistroMatch,
		"S.5....T.    /usr/bin/jq\n":        trust.DistroMismatch,
		".......T.    /usr/bin/jq\n":        trust.DistroMatch,
		"S.5....T.  c /usr/bin/jq\n":        trust.DistroUnknown,
		"missing      /usr/bin/jq\n":        trust.DistroUnknown,
		"..?......    /usr/bin/jq\n":        trust.DistroUnknown,
		"S.5....T.    /usr/bin/other\n":     trust.DistroMatch,
		"S.5....T.    /x/usr/bin/jq\n.....": trust.DistroMatch,
	} {
		if got := RPMAnswer([]byte(out), "/usr/bin/jq", "jq"); got.Distro != want {
			t.Errorf("%q: %v, want %v", out, got.Distro, want)
		}
	}
}

// The machine's own database, where it is Debian's: a file of a package is what was installed.
func TestThisMachine(t *testing.T) {
	if _, err := os.Stat(dpkgInfo); err != nil {
		return // another distribution: its formats are tested above
	}
	raw, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	got := Root{Dir: "/", Owned: func(string) bool { return true }}.Ask("/usr/bin/id", hex.EncodeToString(sum[:]))
	if got.Distro != trust.DistroMatch {
		t.Errorf("%+v", got)
	}
}

func FuzzDpkgSum(f *testing.F) {
	f.Add([]byte("d41d8cd98f00b204e9800998ecf8427e  usr/bin/id\n"), "/usr/bin/id")
	f.Add([]byte("  \n\n  x"), "/x")
	f.Fuzz(func(t *testing.T, sums []byte, path string) {
		if s := DpkgSum(sums, path); s != "" && len(s) != 32 {
			t.Errorf("%q", s)
		}
		ApkSum(sums, path)
		MtreeSum(sums, path)
	})
}
