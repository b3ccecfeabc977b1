// Package archive takes single programs out of packages and release archives, without
// believing anything that they say about where things go: nothing is unpacked but the
// files that are asked for, and no name of an archive becomes a path.
package archive

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/regular"
)

// Limits of one archive. They are far above any package of programs and far below what
// a small machine has.
const (
	maxEntries  = 500_000
	maxUnpacked = 8 << 30
	maxFile     = 1 << 30
	maxTaken    = 64
	maxWindow   = 128 << 20 // memory of a decompressor
	maxControl  = 1 << 20
)

// File is one file that was taken out.
type File struct {
	Name   string // in the archive, cleaned
	Path   string // where it lies now
	Size   int64
	SHA256 string
	Link   string // it is a link to this name, and was not taken out
}

// Contents is what an archive held of what was asked for.
type Contents struct {
	Control map[string]string // of a Debian package: Package, Version, Architecture, …
	Files   []File
}

// Is reports whether a file name is that of an archive that Extract reads.
func Is(name string) bool {
	for _, end := range [...]string{".deb", ".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.zst", ".tar.bz2", ".tbz2"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// Extract puts the executables of an archive that want accepts into new directories
// below dir, each under the name base. Maintainer scripts of packages are neither run
// nor unpacked.
func Extract(file, dir, base string, want func(name string) bool) (Contents, error) {
	x := &extraction{dir: dir, base: base, want: want, left: maxUnpacked}
	f, err := regular.Open(file)
	if err == nil {
		defer f.Close()
		switch {
		case strings.HasSuffix(file, ".deb"):
			err = x.deb(f)
		case strings.HasSuffix(file, ".zip"):
			err = x.zip(f)
		default:
			err = x.tar(bufio.NewReader(f), filepath.Base(file))
		}
	}
	if err != nil {
		return Contents{}, &errcode.Error{Code: errcode.Archive, Msg: file + ": cannot be unpacked: " + err.Error(), Details: map[string]any{"file": file}, Err: err}
	}
	return x.out, nil
}

type extraction struct {
	dir, base string
	want      func(string) bool
	left      int64 // bytes that may still come out of decompressors
	entries   int
	out       Contents
}

var errTooLarge = errors.New("it unpacks to more than is reasonable")

// bounded stops a bomb: what comes out of all decompressors together is limited.
type bounded struct {
	r io.Reader
	x *extraction
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.x.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.x.left)])
	b.x.left -= int64(n)
	return n, err
}

// decoded opens the compression that name states.
func (x *extraction) decoded(r *bufio.Reader, name string) (io.Reader, func(), error) {
	done := func() {}
	switch end := path.Ext(name); end {
	case ".gz", ".tgz":
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, nil, err
		}
		return &bounded{z, x}, done, nil
	case ".xz", ".txz":
		if err := smallWindow(r); err != nil {
			return nil, nil, err
		}
		z, err := xz.ReaderConfig{SingleStream: true}.NewReader(r)
		if err != nil {
			return nil, nil, err
		}
		return &bounded{z, x}, done, nil
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxUnpacked))
		if err != nil {
			return nil, nil, err
		}
		return &bounded{z, x}, z.Close, nil
	case ".bz2", ".tbz2":
		return &bounded{bzip2.NewReader(r), x}, done, nil
	case ".tar":
		return &bounded{r, x}, done, nil
	default:
		return nil, nil, fmt.Errorf("%q is a compression that is not known here", end)
	}
}

// smallWindow refuses an xz stream whose first block asks for a large dictionary, which
// the decoder would take from memory at once. Encoders use one size for all blocks.
func smallWindow(r *bufio.Reader) error {
	head, err := r.Peek(12 + 8)
	if err != nil {
		return err
	}
	// Stream header (12), size of the block header, its flags; sizes of the block are
	// optional and stand before the filter.
	at := 12 + 2
	for _, bit := range [...]byte{0x40, 0x80} {
		if head[13]&bit != 0 {
			for n := 0; ; n++ {
				if head, err = r.Peek(at + 4); err != nil || n > 9 {
					return errors.New("its xz header cannot be read")
				}
				at++
				if head[at-1]&0x80 == 0 {
					break
				}
			}
		}
	}
	if head, err = r.Peek(at + 3); err != nil {
		return err
	}
	if head[at] != 0x21 || head[at+1] != 1 {
		return errors.New("its xz filter is not LZMA2")
	}
	if bits := head[at+2]; bits > 40 || uint64(2|bits&1)<<(bits/2+11) > maxWindow {
		return errors.New("its xz dictionary is larger than 128 MiB")
	}
	return nil
}

// deb reads a Debian package: an ar archive of a version, control.tar and data.tar.
func (x *extraction) deb(f io.Reader) error {
	r := bufio.NewReader(f)
	magic := make([]byte, 8)
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != "!<arch>\n" {
		return errors.New("it is not a Debian package")
	}
	seen := map[string]bool{}
	for member := 0; ; member++ {
		head := make([]byte, 60)
		if _, err := io.ReadFull(r, head); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		size, err := strconv.ParseInt(strings.TrimSpace(string(head[48:58])), 10, 64)
		name := strings.TrimSuffix(strings.TrimSpace(string(head[:16])), "/")
		if err != nil || size < 0 || string(head[58:]) != "`\n" || member > 16 {
			return errors.New("a member of it has a header that cannot be read")
		}
		if member == 0 && name != "debian-binary" {
			return errors.New("it does not begin with debian-binary")
		}
		body := io.LimitReader(r, size)
		switch kind, _, _ := strings.Cut(name, ".tar"); {
		case kind != "control" && kind != "data":
		case seen[kind]:
			return errors.New("it has two members " + kind)
		case kind == "control":
			seen[kind] = true
			err = x.control(bufio.NewReader(body), name)
		default:
			seen[kind] = true
			err = x.tar(bufio.NewReader(body), name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		// The rest of the member, and the byte that keeps members even.
		if _, err := io.Copy(io.Discard, body); err != nil {
			return err
		}
		if size%2 == 1 {
			if _, err := r.ReadByte(); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		}
	}
	if !seen["control"] || !seen["data"] {
		return errors.New("it lacks control.tar or data.tar")
	}
	return nil
}

// control reads the fields of the package; the scripts beside them are passed over.
func (x *extraction) control(r *bufio.Reader, name string) error {
	return x.members(r, name, func(h *tar.Header, body io.Reader) error {
		if path.Clean(h.Name) != "control" || h.Typeflag != tar.TypeReg || h.Size > maxControl {
			return nil
		}
		raw, err := io.ReadAll(io.LimitReader(body, maxControl))
		if err != nil {
			return err
		}
		x.out.Control = map[string]string{}
		for line := range bytes.Lines(raw) {
			if key, value, ok := strings.Cut(strings.TrimRight(string(line), "\r\n"), ":"); ok && key != "" && key[0] != ' ' && key[0] != '\t' {
				x.out.Control[key] = strings.TrimSpace(value)
			}
		}
		return nil
	})
}

func (x *extraction) tar(r *bufio.Reader, name string) error {
	return x.members(r, name, func(h *tar.Header, body io.Reader) error {
		switch h.Typeflag {
		case tar.TypeReg:
			return x.take(h.Name, h.FileInfo().Mode(), "", body)
		case tar.TypeSymlink, tar.TypeLink:
			return x.take(h.Name, 0o777, h.Linkname, nil)
		}
		return nil
	})
}

// members hands each member of a tar archive to visit. All archives of an extraction
// together have one bound.
func (x *extraction) members(r *bufio.Reader, name string, visit func(h *tar.Header, body io.Reader) error) error {
	z, done, err := x.decoded(r, name)
	if err != nil {
		return err
	}
	defer done()
	t := tar.NewReader(z)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if x.entries++; x.entries > maxEntries {
			return errTooLarge
		}
		if err := visit(h, t); err != nil {
			return err
		}
	}
}

func (x *extraction) zip(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	z, err := zip.NewReader(f, info.Size())
	if err != nil {
		return err
	}
	if len(z.File) > maxEntries {
		return errTooLarge
	}
	for _, member := range z.File {
		mode := member.Mode()
		if mode.IsDir() || mode&fs.ModeType != 0 || !x.want(path.Clean(member.Name)) {
			continue
		}
		if strings.HasSuffix(member.Name, ".exe") {
			mode |= 0o111 // archives made on Windows know no such bit
		}
		r, err := member.Open()
		if err != nil {
			return err
		}
		err = x.take(member.Name, mode, "", &bounded{r, x})
		r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// take writes one wanted file into a directory of its own.
func (x *extraction) take(name string, mode fs.FileMode, link string, r io.Reader) error {
	name = path.Clean(strings.TrimPrefix(path.Clean(name), "/"))
	if mode&0o111 == 0 || !x.want(name) {
		return nil
	}
	if len(x.out.Files) >= maxTaken {
		return errors.New("more than 64 files of it are meant; name them more exactly")
	}
	if r == nil {
		x.out.Files = append(x.out.Files, File{Name: name, Link: link})
		return nil
	}
	dir := filepath.Join(x.dir, strconv.Itoa(len(x.out.Files)))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	to := filepath.Join(dir, x.base)
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(r, maxFile+1))
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil && n > maxFile {
		err = errTooLarge
	}
	if err != nil {
		return err
	}
	x.out.Files = append(x.out.Files, File{Name: name, Path: to, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}
