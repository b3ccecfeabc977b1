package archive

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

type entry struct {
	name, body, link string
	mode             int64
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.body)), Typeflag: tar.TypeReg}
		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func packed(t testing.TB, raw []byte, open func(io.Writer) io.WriteCloser) []byte {
	t.Helper()
	var b bytes.Buffer
	w := open(&b)
	if _, err := w.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gz(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }

func zst(w io.Writer) io.WriteCloser {
	z, err := zstd.NewWriter(w)
	if err != nil {
		panic(err)
	}
	return z
}

func xzed(w io.Writer) io.WriteCloser {
	z, err := xz.NewWriter(w)
	if err != nil {
		panic(err)
	}
	return z
}

type member struct {
	name string
	body []byte
}

func arOf(members ...member) []byte {
	out := []byte("!<arch>\n")
	for _, m := range members {
		out = fmt.Appendf(out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, 0, 0, 0, "100644", len(m.body))
		out = append(out, m.body...)
		if len(m.body)%2 == 1 {
			out = append(out, '\n')
		}
	}
	return out
}

func put(t testing.TB, name string, raw []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func isTool(name string) bool { return filepath.Base(name) == "tool" }

func TestExtract(t *testing.T) {
	data := tarOf(t, entry{name: "./usr/bin/tool", body: "program", mode: 0o755}, entry{name: "./usr/share/tool", body: "text", mode: 0o644}, entry{name: "./usr/sbin/tool", link: "../bin/tool"},
		entry{name: "../../../../etc/tool", body: "evil", mode: 0o755}, entry{name: "/abs/tool", body: "abs", mode: 0o755})
	control := packed(t, tarOf(t, entry{name: "./control", body: "Package: p\nVersion: 1:2-3\nDescription: x\n Version: 9\n"}, entry{name: "./postinst", body: "tool", mode: 0o755}), gz)
	deb := func(name string, data []byte) []byte {
		return arOf(member{"debian-binary", []byte("2.0\n")}, member{"control.tar.gz", control}, member{"_gpgorigin", []byte("odd")}, member{name, data})
	}
	var zipped bytes.Buffer
	z := zip.NewWriter(&zipped)
	for name, body := range map[string]string{"dir/tool": "program", "../../tool": "evil"} {
		h := &zip.FileHeader{Name: name}
		h.SetMode(0o755)
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, body)
	}
	z.Close()
	for name, raw := range map[string][]byte{
		"a.tar": data, "a.tar.gz": packed(t, data, gz), "a.tgz": packed(t, data, gz), "a.tar.xz": packed(t, data, xzed), "a.tar.zst": packed(t, data, zst), "a.zip": zipped.Bytes(),
		"gz.deb": deb("data.tar.gz", packed(t, data, gz)), "xz.deb": deb("data.tar.xz", packed(t, data, xzed)), "zst.deb": deb("data.tar.zst", packed(t, data, zst)), "plain.deb": deb("data.tar", data),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			got, err := Extract(put(t, name, raw), dir, "tool", isTool)
			if err != nil {
				t.Fatal(err)
			}
			bodies := map[string]string{}
			for _, f := range got.Files {
				if f.Link != "" {
					if f.Path != "" {
						t.Errorf("a link was unpacked: %+v", f)
					}
					continue
				}
				if rel, err := filepath.Rel(dir, f.Path); err != nil || strings.HasPrefix(rel, "..") {
					t.Errorf("%s lies outside", f.Path)
				}
				raw, err := os.ReadFile(f.Path)
				if err != nil || int64(len(raw)) != f.Size || len(f.SHA256) != 64 {
					t.Errorf("%+v %v", f, err)
				}
				bodies[f.Name] = string(raw)
			}
			if strings.HasSuffix(name, ".zip") {
				if bodies["dir/tool"] != "program" || len(bodies) != 2 {
					t.Errorf("%q", bodies)
				}
				return
			}
			if bodies["usr/bin/tool"] != "program" || bodies["abs/tool"] != "abs" || len(bodies) != 3 || len(got.Files) != 4 {
				t.Errorf("%q of %+v", bodies, got.Files)
			}
			if strings.HasSuffix(name, ".deb") && (got.Control["Version"] != "1:2-3" || got.Control["Package"] != "p") {
				t.Errorf("%q", got.Control)
			}
		})
	}
}

func TestExtractRefuses(t *testing.T) {
	data := packed(t, tarOf(t, entry{name: "tool", body: "x", mode: 0o755}), gz)
	big := packed(t, tarOf(t, entry{name: "tool", body: strings.Repeat("x", 4<<20), mode: 0o755}), gz)
	binary, control := member{"debian-binary", []byte("2.0\n")}, member{"control.tar.gz", data}
	var many []entry
	for i := range maxTaken + 1 {
		many = append(many, entry{name: fmt.Sprint(i, "/tool"), body: "x", mode: 0o755})
	}
	window := packed(t, bytes.Repeat([]byte("x"), 1000), xzed)
	window[16] = 39 // 3 GiB, where the encoder wrote its own
	for name, raw := range map[string][]byte{
		"empty.deb": nil, "html.deb": []byte("<html>"), "nothing.deb": arOf(binary), "order.deb": arOf(control, binary), "twice.deb": arOf(binary, control, control),
		"size.deb":  append(arOf(binary), fmt.Appendf(nil, "%-48s%-10s`\n", "data.tar", "-5")...),
		"short.deb": arOf(binary, control, member{"data.tar.gz", data})[:400], "odd.deb": arOf(binary, control, member{"data.tar.lzma", data}),
		"notzip.zip": []byte("PK"), "cut.tar.gz": data[:len(data)/2], "many.tar": tarOf(t, many...), "window.tar.xz": window, "text.tar.zst": []byte("no"),
	} {
		if got, err := Extract(put(t, name, raw), t.TempDir(), "tool", isTool); err == nil {
			t.Errorf("%s: %+v", name, got)
		} else if !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v does not name it", name, err)
		}
	}
	x := &extraction{dir: t.TempDir(), base: "tool", want: isTool, left: 1 << 20}
	f, err := os.Open(put(t, "bomb.tar.gz", big))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := x.tar(bufio.NewReader(f), "bomb.tar.gz"); err == nil || !strings.Contains(err.Error(), errTooLarge.Error()) {
		t.Errorf("a bomb: %v", err)
	}
}

func FuzzExtract(f *testing.F) {
	f.Add(arOf(member{"debian-binary", []byte("2.0\n")}, member{"control.tar", tarOf(f, entry{name: "control", body: "Package: p\n"})}, member{"data.tar", tarOf(f, entry{name: "tool", body: "x", mode: 0o755})}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := t.TempDir()
		x := &extraction{dir: dir, base: "tool", want: func(string) bool { return true }, left: 1 << 20}
		_ = x.deb(bytes.NewReader(raw))
		for _, file := range x.out.Files {
			if file.Path != "" && !strings.HasPrefix(file.Path, dir+"/") {
				t.Errorf("%q lies outside", file.Path)
			}
		}
	})
}

// TestOneBoundForAllMembers: those of a package's control archive count, too.
func TestOneBoundForAllMembers(t *testing.T) {
	one := tarOf(t, entry{name: "./control", mode: 0o644, body: "Package: p\n"})
	x := &extraction{left: maxUnpacked, want: func(string) bool { return false }, entries: maxEntries - 1}
	if err := x.control(bufio.NewReader(bytes.NewReader(one)), "control.tar"); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(*bufio.Reader, string) error{"control": x.control, "tar": x.tar} {
		if err := read(bufio.NewReader(bytes.NewReader(one)), "x.tar"); !errors.Is(err, errTooLarge) {
			t.Errorf("%s: one member more than the bound: %v", name, err)
		}
	}
}
