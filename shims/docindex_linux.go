package shims

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/newfile"
)

// A document of more than a few kilobytes is read by an index that is kept for it, so
// that what a look-up costs does not grow with the document. An index file is
//
//	"atixf1\n\x00" | device, inode, size, mtime, ctime | SHA-256 of the document | index
//
// and is named after the path of the document. Like the digest cache it believes what
// the file system says of a file; it lies where no child can write, and serves only
// documents that whoever can write there could have written.

const (
	docIndexMagic  = "atixf1\n\x00"
	docIndexHeader = len(docIndexMagic) + 5*8 + sha256.Size
	indexFrom      = 8 << 10  // a shorter document is read sooner than its index
	maxIndexFile   = 16 << 20 // more than an index of the largest document
	// A file changed within the clock's granularity keeps its ctime.
	indexSettle = 2 * time.Second
)

func docIndexPath(dir, path string) string {
	sum := sha256.Sum256([]byte(path))
	return dir + "/" + hex.EncodeToString(sum[:])
}

// identity is what changes whenever a file does.
func (f *safeFile) identity() []byte {
	b := make([]byte, 0, docIndexHeader)
	b = append(b, docIndexMagic...)
	for _, n := range [...]uint64{uint64(f.stat.Dev), f.stat.Ino, uint64(f.stat.Size), uint64(f.stat.Mtim.Nano()), uint64(f.stat.Ctim.Nano())} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

// indexable reports whether an index in dir may speak for the file.
func (f *safeFile) indexable(dir string) bool {
	return dir != "" && f.stat.Size >= indexFrom && (!f.rootOwned || os.Geteuid() == 0)
}

// indexed opens the document by its index; nil if there is none for what the file is
// now. The file stays open as long as the document.
func (f *safeFile) indexed(dir string) (doc *atip.Document, digest string) {
	if !f.indexable(dir) {
		return nil, ""
	}
	x, err := openSafe(docIndexPath(dir, f.path), maxIndexFile)
	if err != nil {
		return nil, ""
	}
	header := make([]byte, docIndexHeader)
	if n, _ := x.ReadAt(header, 0); n != len(header) || !bytes.Equal(header[:docIndexHeader-sha256.Size], f.identity()) {
		x.Close()
		return nil, ""
	}
	size := x.stat.Size - int64(docIndexHeader)
	if doc, err = atip.OpenIndexed(f, f.stat.Size, io.NewSectionReader(x, int64(docIndexHeader), size), size); err != nil {
		x.Close()
		return nil, ""
	}
	return doc, hex.EncodeToString(header[docIndexHeader-sha256.Size:])
}

// keepIndex stores an index of the document. A failure costs the next look-up some
// time and nothing else.
func (f *safeFile) keepIndex(dir string, raw []byte, comments bool, now time.Time) {
	if !f.indexable(dir) || now.Sub(time.Unix(0, f.stat.Ctim.Nano())) < indexSettle || !truthfulTimes(int(f.Fd())) {
		return
	}
	index, err := atip.Index(raw, atip.ParseOptions{Comments: comments, MaxBytes: maxFile})
	if err != nil {
		return
	}
	sum := sha256.Sum256(raw)
	body := append(append(f.identity(), sum[:]...), index...)
	tmp, err := createTemp(dir)
	if err != nil {
		return
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(body)
	if closing := tmp.Close(); err == nil && closing == nil {
		os.Rename(tmp.Name(), docIndexPath(dir, f.path))
	}
}

func createTemp(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.CreateTemp(dir, newfile.Pattern)
}

// truthfulTimes lists the local file systems whose ctime changes with every change of
// content.
func truthfulTimes(fd int) bool {
	var fs syscall.Statfs_t
	if syscall.Fstatfs(fd, &fs) != nil {
		return false
	}
	switch uint32(fs.Type) {
	case 0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x2fc12fc1, 0xca451a4e, 0x01021994, 0x794c7630:
		// ext, XFS, Btrfs, F2FS, ZFS, bcachefs, tmpfs, overlayfs
		return true
	}
	return false
}
