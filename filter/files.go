package filter

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// maxFile is the largest credential file that is read.
const maxFile = 256 << 10

// CredentialFile is a file whose values no output may show. The caller knows where such files
// lie.
type CredentialFile struct {
	Source string // names it in placeholders
	Path   string // absolute
	Format string // how it holds values: assignments, netrc, docker, urls or pgpass
}

// reader finds the values in a file of a format, nil if there is no such format.
func reader(format string) func(c *collector, name string, data []byte) {
	switch format {
	case "assignments":
		return readAssignments
	case "netrc":
		return readNetrc
	case "docker":
		return readDocker
	case "urls":
		return readURLs
	case "pgpass":
		return readPgpass
	}
	return nil
}

// files reads the credential files. Only what every user is expected to keep
// secret is read: a project's .env could hide ordinary words from its user.
func (c *collector) files(src *Sources) error {
	for _, f := range src.Files {
		read := reader(f.Format)
		if read == nil {
			return &errcode.Error{Code: errcode.Internal, Msg: "credential file " + f.Path + ": unknown format " + strconv.Quote(f.Format)}
		}
		c.file(f.Source, f.Path, read)
	}
	for _, path := range src.ExtraFiles {
		if rest, ok := strings.CutPrefix(path, "~/"); ok && src.Home != "" {
			path = filepath.Join(src.Home, rest)
		}
		c.file(filepath.Base(path), path, readExtra)
	}
	return nil
}

func (c *collector) file(name, path string, read func(*collector, string, []byte)) {
	data, err := readOwn(path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		c.known.Unreadable = append(c.known.Unreadable, path)
	default:
		read(c, "file."+name, data)
	}
}

func readNetrc(c *collector, name string, data []byte) {
	words := strings.Fields(string(data))
	for i := 0; i+1 < len(words); i++ {
		if words[i] == "password" || words[i] == "account" {
			c.add(name, words[i+1])
			i++
		}
	}
}

func readPgpass(c *collector, name string, data []byte) {
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields, field := 0, 0
		for i := 0; i < len(line) && fields < 4; i++ {
			switch line[i] {
			case '\\':
				i++
			case ':':
				if fields++; fields == 4 {
					field = i + 1
				}
			}
		}
		if fields == 4 {
			c.add(name, strings.NewReplacer(`\:`, ":", `\\`, `\`).Replace(line[field:]))
		}
	}
}

func readURLs(c *collector, name string, data []byte) {
	for line := range strings.Lines(string(data)) {
		if password, ok := urlPassword(strings.TrimSpace(line)); ok {
			c.add(name, password)
			c.add(name, unpercent(password))
		}
	}
}

func unpercent(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && sets[setXDigit].has(s[i+1]) && sets[setXDigit].has(s[i+2]) {
			b.WriteByte(unhex(s[i+1])<<4 | unhex(s[i+2]))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func unhex(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return (c | 0x20) - 'a' + 10
}

func readDocker(c *collector, name string, data []byte) {
	var doc struct {
		Auths map[string]struct {
			Auth          string `json:"auth"`
			Password      string `json:"password"`
			IdentityToken string `json:"identitytoken"`
			RegistryToken string `json:"registrytoken"`
		} `json:"auths"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		readAssignments(c, name, data)
		return
	}
	for _, a := range doc.Auths {
		for _, v := range [...]string{a.Auth, a.Password, a.IdentityToken, a.RegistryToken} {
			if v != "" {
				c.add(name, v)
			}
		}
		if dec, err := base64.StdEncoding.DecodeString(a.Auth); err == nil {
			if _, password, ok := strings.Cut(string(dec), ":"); ok {
				c.add(name, password)
			}
		}
	}
}

// readAssignments finds the values of secret names in INI, TOML, YAML and JSON
// with the reader for names and operators that streams use; what the gate thinks
// of a value does not matter here.
func readAssignments(c *collector, name string, data []byte) {
	for line := range bytes.Lines(data) {
		e := engine{}
		e.view.vis = append(line, '\n')
		for k := range keywords {
			kw := keywords[k].word
			for at := 0; at+len(kw) <= len(line); at++ {
				if !hasFold(line[at:], kw) {
					continue
				}
				info := e.readName(at, &entry{text: kw, ref: keywordRef(k), kind: eName}, true)
				if info.outcome != found || info.class < classWeak {
					continue
				}
				s := scan{v: e.view.vis, p: info.end, eof: true}
				s.leadOf(&info)
				cand, ok := linkOperator(&s, &info)
				if !ok {
					continue
				}
				value := bytes.TrimRight(e.view.vis[cand.at:], " \t\r\n,;")
				if q, quote, depth := readQuote(e.view.vis, cand.at); q > cand.at {
					end, _, _, _ := e.valueEnd(q, valueForm{form: formQuoted, quote: quote, depth: depth}, true)
					value = e.view.vis[q:end]
				}
				c.add(name, string(value))
			}
		}
		if i := bytes.Index(line, []byte("://")); i >= 0 {
			if password, ok := urlPassword(string(line)); ok {
				c.add(name, password)
			}
		}
	}
}

// readExtra takes a file that policy names as one value if it is one line, and as
// assignments otherwise.
func readExtra(c *collector, name string, data []byte) {
	text := strings.TrimSpace(string(data))
	if !strings.ContainsAny(text, "\n=") {
		c.add(name, text)
		return
	}
	readAssignments(c, name, data)
}

// kubectl prints the data of a Secret before its kind, and waiting for the kind
// would mean to look back. So each base64 value that decodes to text is taken for
// a secret if it stands under data: right behind apiVersion: v1.

const (
	maxDataKey = 300 // white space, quotes and a key of 253 bytes
	minData    = 12
)

// startsData reports whether the "data" at i is that of such an object.
func startsData(v []byte, i int) bool {
	left := bytes.TrimRight(v[max(0, i-80):i], " \t\r\n\"")
	for _, head := range [...]string{"apiVersion: v1", `apiVersion":"v1",`, `apiVersion": "v1",`} {
		if bytes.HasSuffix(left, []byte(head)) {
			return true
		}
	}
	return false
}

// judgeData judges one pair of the block, from what stands before its key on.
func (e *engine) judgeData(c *candidate, eof bool) verdict {
	v, p := e.view.vis, c.at
	limit := p + maxDataKey
	indented, broken := false, false
	for p < len(v) && p < limit {
		switch v[p] {
		case '\n':
			broken, indented = true, false
		case ' ', '\t', '{', '"':
			indented = true
		case '\r', ',':
		default:
			goto key
		}
		p++
	}
key:
	if p < len(v) && broken && !indented {
		return verdict{}
	}
	from := p
	for p < len(v) && p < limit && isNameByte(v[p]) {
		p++
	}
	keyed, key := p > from, v[from:p]
	if p < len(v) && v[p] == '"' {
		p++
	}
	if p < len(v) && (v[p] != ':' || !keyed || p >= limit) {
		return verdict{}
	}
	for p++; p < len(v) && v[p] == ' '; p++ {
	}
	if p < len(v) && v[p] == '"' {
		p++
	}
	start := p
	for p < len(v) && p-start < maxValue && sets[setBase64Pad].has(v[p]) {
		p++
	}
	if p >= len(v) && !eof {
		return verdict{outcome: more, loose: p < start+loosePrefix}
	}
	if p > len(v) {
		return verdict{}
	}
	c.then = p
	val := v[start:p]
	r := verdict{outcome: found, layer: layerContext, start: start, end: p, rule: c.rule}
	if len(val) >= maxValue {
		r.outcome, r.until = swallow, sets[setBase64Pad]
		return r
	}
	if p == start || p < len(v) && v[p] != '"' && v[p] != '\n' && v[p] != '\r' && v[p] != ',' || !encodesSecret(val, endsInAny(key, "username user host hostname port database dbname crt cert")) {
		return verdict{}
	}
	return r
}

// encodesSecret reports whether a value is padded base64 of readable text, or of random bytes. Where the key says
// that it is none, an address with a password still is.
func encodesSecret(val []byte, none bool) bool {
	if len(val) < minData || len(val)%4 != 0 {
		return false
	}
	dec := make([]byte, base64.StdEncoding.DecodedLen(len(val)))
	n, err := base64.StdEncoding.Decode(dec, val)
	if err != nil || none {
		return err == nil && bytes.IndexByte(dec[:n], '@') >= 0
	}
	if digits, upper, lower := tally(val); len(val) >= 24 && digits > 1 && upper > 1 && lower > 1 && unlikely(val) && !readable(val) {
		return true
	}
	if !utf8.Valid(dec[:n]) {
		return false
	}
	for _, c := range dec[:n] {
		if c < 0x20 && !isSpace(c) || c == 0x7f {
			return false
		}
	}
	return true
}
