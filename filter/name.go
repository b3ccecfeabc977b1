package filter

import (
	"bytes"
	"strings"
)

// class is how much the name left of a value says.
type class uint8

const (
	classNone      class = iota
	classQuery           // code and key in a query: only unlikely values
	classWeak            // token, auth, sig: the value must look random
	classStrong          // password, secret, api key
	classHeader          // Authorization: all but the scheme
	classCookie          // each pair
	classSetCookie       // the first pair
	classExtra           // names that policy lists
)

// keywords are the last words of names, with the three bytes by which the index
// finds them: those that are rarest in build logs.
var keywords = [...]struct {
	word string
	off  uint8
}{
	{"password", 2}, // ssw
	{"passwd", 2},
	{"passwords", 2},
	{"passphrase", 5}, // hra
	{"pwd", 0},
	{"secret", 1}, // ecr
	{"secrets", 1},
	{"key", 0},
	{"token", 1}, // oke
	{"tokens", 1},
	{"auth", 1},          // uth
	{"authorization", 1}, // uth
	{"credential", 4},    // ent
	{"credentials", 7},   // ial
	{"cookie", 3},        // kie
	{"signature", 3},     // nat
	{"sig", 0},
	{"dsn", 0},
	{"pat", 0},
	{"pass", 0},
	{"code", 0},
}

// noPattern is the ref of a keyword of ours.
const noPattern = -1

// patternWord is the part of a policy's name pattern by which it is looked for:
// the literal text at its end.
func patternWord(pattern string) (string, bool) {
	word := strings.ToLower(pattern[strings.LastIndexByte(pattern, '*')+1:])
	word = strings.TrimLeft(word, "_-./")
	return word, len(word) >= 3
}

// nameInfo is a name that ends with a keyword.
type nameInfo struct {
	class class
	start int    // of the whole identifier
	end   int    // after it
	rule  string // what a placeholder says
	noTag bool
	outcome
}

func isIdent(c byte) bool { return isAlnum(c) || c == '_' || c == '-' || c == '.' || c == '/' }

// maxName bounds the look to the left.
const maxName = 64

// readName judges whether the keyword at ks ends a name that says secret.
func (e *engine) readName(ks int, kw string, pattern int, eof bool) nameInfo {
	v := e.view.vis
	n := min(len(kw), len(v)-ks)
	for i := range n {
		if fold(v[ks+i]) != kw[i] {
			return nameInfo{}
		}
	}
	if n < len(kw) {
		if eof {
			return nameInfo{}
		}
		return nameInfo{outcome: more}
	}
	end := ks + n
	// The name may go on: key_base, a number, or another word, which decides then.
	base := ""
	if kw == "key" {
		for _, suffix := range [...]string{"_base", "-base", "base", "_data", "-data", "data"} {
			if hasFold(v[end:], suffix) {
				end += len(suffix)
				base = suffix
				break
			}
		}
	}
	if kw == "key" && base == "" && !eof && len(v)-end < len("_base") &&
		(end == len(v) || strings.IndexByte("_-bBdD", v[end]) >= 0) {
		return nameInfo{outcome: more}
	}
	p := end
	if p < len(v) && (v[p] == '_' || v[p] == '-') && p+1 < len(v) && isDigit(v[p+1]) {
		p++
	}
	for p < len(v) && p-end < 3 && isDigit(v[p]) {
		p++
	}
	if p < len(v) && isAlnum(v[p]) {
		return nameInfo{}
	}
	if p+1 >= len(v) && !eof {
		return nameInfo{outcome: more}
	}
	if p < len(v) && v[p] == '_' {
		return nameInfo{}
	}
	if p < len(v) && (v[p] == '-' || v[p] == '.' || v[p] == '/') {
		return nameInfo{}
	}
	end = p
	start := ks
	for start > 0 && ks-start < maxName && isIdent(v[start-1]) {
		start--
	}
	// An escape before the name is not part of it: \nPASSWORD=…
	if start > 0 && v[start-1] == '\\' && start < ks && (v[start] == 'n' || v[start] == 't' || v[start] == 'r') {
		start++
	}
	if bytes.HasSuffix(v[:start], []byte(placeholderHead)) {
		return nameInfo{} // the rule in a placeholder of ours
	}
	if bytes.HasSuffix(v[:start], []byte("::")) {
		return nameInfo{} // a type, such as AWS::IAM::AccessKey
	}
	if bytes.HasPrefix(v[start:], []byte("//")) && start > 0 && v[start-1] == ':' && bytes.IndexByte(v[start+2:end], '/') < 0 {
		return nameInfo{} // the user of a URL
	}
	info := nameInfo{start: start, end: end, outcome: found}
	if pattern != noPattern {
		if globFold(e.set.cfg.Names[pattern], string(v[start:end])) {
			info.class, info.rule = classExtra, "policy-name"
		}
	} else {
		info.class, info.rule, info.noTag = classify(v, start, ks, end, kw, base)
	}
	if info.class == classNone {
		return nameInfo{}
	}
	return info
}

// classify decides by the last words of a name.
func classify(v []byte, start, ks, end int, kw, base string) (class, string, bool) {
	left := v[start:ks]
	prev := left
	for len(prev) > 0 && !isAlnum(prev[len(prev)-1]) {
		prev = prev[:len(prev)-1]
	}
	apart := len(left) == 0 || !isAlnum(left[len(left)-1]) || // a word of its own
		isUpper(v[ks]) && isLower(left[len(left)-1])
	switch kw {
	case "password", "passwords", "passwd":
		return classStrong, "password", true
	case "passphrase":
		return classStrong, "passphrase", true
	case "pwd":
		if whole := string(v[start:end]); whole == "PWD" || whole == "OLDPWD" {
			return classNone, "", false
		}
		return classStrong, "password", true
	case "secret", "secrets":
		return classStrong, "secret", false
	case "key":
		if base != "" {
			return classStrong, "secret-key", false
		}
		if endsInWord(prev, "api") {
			return classStrong, "api-key", false
		}
		for _, q := range [...]string{"private", "secret", "access", "account", "shared", "signing", "encryption", "master",
			"storage", "preshared"} {
			if endsInWord(prev, q) {
				return classStrong, "secret-key", false
			}
		}
		if hasFold(v[start:end], "x-") {
			return classStrong, "header-key", false
		}
		if start > 0 && (v[start-1] == '?' || v[start-1] == '&') && start == ks {
			return classQuery, "query-key", false
		}
		return classNone, "", false
	case "token", "tokens":
		for _, q := range [...]string{"pad", "eos", "bos", "unk", "mask", "stop", "prompt", "completion", "total", "input",
			"output", "max", "cls", "sep", "next", "page", "continuation", "num"} {
			if endsInWord(prev, q) {
				return classNone, "", false
			}
		}
		for _, q := range [...]string{"access", "auth", "refresh", "session", "api"} {
			if endsInWord(prev, q) {
				return classStrong, "token", false
			}
		}
		if hasFold(v[start:end], "x-") {
			return classStrong, "header-key", false
		}
		return classWeak, "token", false
	case "auth":
		if !apart && !endsInWord(prev, "o") {
			return classNone, "", false
		}
		return classWeak, "auth", false
	case "authorization":
		return classHeader, "authorization", false
	case "credential", "credentials":
		return classWeak, "credential", false
	case "cookie":
		if len(left) == 0 {
			return classCookie, "cookie", false
		}
		if hasFold(v[start:end], "set-cookie") {
			return classSetCookie, "cookie", false
		}
		return classWeak, "cookie", false
	case "signature":
		return classWeak, "signature", false
	case "sig", "dsn", "pat":
		if apart {
			return classWeak, kw, false
		}
	case "pass":
		if len(left) == 0 || !isAlnum(left[len(left)-1]) {
			return classWeak, "password", true
		}
	case "code":
		if len(left) == 0 && start > 0 && (v[start-1] == '?' || v[start-1] == '&') {
			return classQuery, "query-code", false
		}
	}
	return classNone, "", false
}

// endsInWord reports whether the text ends with the word, whatever joins them.
func endsInWord(text []byte, word string) bool { return hasFoldSuffix(text, word) }
