package distro

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
)

// ApkSum finds owner and sum, in hex, of an absolute path in Alpine's installed database.
func ApkSum(raw []byte, file string) (owner, sum string) {
	pkg, dir, here := "", "", false
	s := bufio.NewScanner(bytes.NewReader(raw))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		key, value, ok := strings.Cut(s.Text(), ":")
		if !ok {
			if s.Text() == "" {
				pkg, dir, here = "", "", false
			}
			continue
		}
		switch key {
		case "P":
			pkg = value
		case "F":
			dir, here = value, false
		case "R":
			if here = "/"+path.Join(dir, value) == file && !strings.Contains(value, "/"); here {
				owner, sum = pkg, ""
			}
		case "Z":
			// Q1 is SHA-1, Q2 SHA-256, both in base64.
			if !here || len(value) < 2 || value[0] != 'Q' {
				continue
			}
			if b, err := base64.StdEncoding.DecodeString(value[2:]); err == nil {
				sum = hex.EncodeToString(b)
			}
		}
	}
	return owner, sum
}

const pacmanLocal = "/var/lib/pacman/local"

// pacman reads Arch's database: one mtree for each package.
func (r Root) pacman(file, digest string) (Answer, bool) {
	entries, err := os.ReadDir(r.join(pacmanLocal))
	if err != nil {
		return Answer{}, false
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		dir := pacmanLocal + "/" + e.Name()
		files, err := r.database(dir + "/files")
		if err != nil {
			return Answer{Why: err.Error()}, true
		}
		for _, name := range aliases(file) {
			owns, backup := pacmanFile(files, strings.TrimPrefix(name, "/"))
			if !owns {
				continue
			}
			if backup {
				return Answer{Package: e.Name(), Why: "it is a configuration file, which is meant to be changed"}, true
			}
			packed, err := r.database(dir + "/mtree")
			if err != nil {
				return Answer{Package: e.Name(), Why: err.Error()}, true
			}
			plain, err := unzip(packed)
			if err != nil {
				return Answer{Package: e.Name(), Why: "its mtree cannot be read: " + err.Error()}, true
			}
			switch sum, kind := MtreeSum(plain, name); kind {
			case "sha256":
				return r.compare(file, digest, e.Name(), sha256.New(), sum), true
			case "md5":
				return r.compare(file, digest, e.Name(), md5.New(), sum), true
			}
			return Answer{Package: e.Name(), Why: "the package has no sum of the file"}, true
		}
	}
	return Answer{Why: "no package owns it"}, true
}

// pacmanFile looks a path up in the sections of a files list.
func pacmanFile(list []byte, name string) (owns, backup bool) {
	section := ""
	for l := range bytes.Lines(list) {
		text := strings.TrimSuffix(string(l), "\n")
		switch {
		case strings.HasPrefix(text, "%"):
			section = text
		case section == "%FILES%" && text == name:
			owns = true
		case section == "%BACKUP%":
			file, _, _ := strings.Cut(text, "\t")
			backup = backup || file == name
		}
	}
	return owns, backup
}

func unzip(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, maxDatabase))
}

// MtreeSum finds the sum of an absolute path in an mtree(5) file, with its kind: sha256, or
// md5 if there is no better one.
func MtreeSum(plain []byte, file string) (sum, kind string) {
	for l := range bytes.Lines(plain) {
		words := strings.Fields(string(l))
		if len(words) == 0 || words[0] == "/set" || "/"+strings.TrimPrefix(unescape(words[0]), "./") != file {
			continue
		}
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			switch {
			case (key == "sha256digest" || key == "sha256") && len(value) == 2*sha256.Size:
				sum, kind = value, "sha256"
			case (key == "md5digest" || key == "md5") && len(value) == 2*md5.Size && kind == "":
				sum, kind = value, "md5"
			}
		}
	}
	return sum, kind
}

// unescape reads the octal escapes of mtree(5).
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
