package filter

// form is the syntax a value stands in; it decides where the value ends.
type form uint8

const (
	formPlain    form = iota // unquoted: to white space or a delimiter
	formQuoted               // to the same quote at the same depth
	formQuery                // to & # or white space
	formXML                  // to <
	formHeader               // to the end of the line or a quote
	formCookie               // to ; the end of the line or a quote
	formTable                // as formPlain; the value must look random
	formURL                  // the authority of a URL
	formArgument             // the next argument of a call; it has to be quoted
	formData                 // a pair of a Kubernetes Secret
	formUser                 // user:value, to white space or a quote
)

// candidate is a value that a name, an operator or "://" announced.
type candidate struct {
	at    int
	form  form
	class class
	noTag bool
	rule  string
	then  int // where the next value of the same header may start, once judged
}

// maxDistance is how far a value may stand from its name.
const maxDistance = 40

// announce looks at a name or a "://" at i and schedules the value behind it.
func (e *engine) announce(i int, ent *entry, eof bool) {
	if ent.kind != eName {
		n := min(len(ent.text), len(e.view.vis)-i)
		if string(e.view.vis[i:i+n]) != ent.text[:n] {
			return // only the hash is the same
		}
		if n < len(ent.text) {
			if !eof {
				e.wait(i, ent)
			}
			return
		}
	}
	if ent.kind == eURL {
		e.schedule(candidate{at: i + len("://"), form: formURL, class: classStrong, rule: "url-password", noTag: true})
		return
	}
	if ent.kind == eData {
		if startsData(e.view.vis, i) {
			e.schedule(candidate{at: i + len(ent.text), form: formData, class: classStrong, rule: "kubernetes-secret"})
		}
		return
	}
	ks := i - int(ent.off)
	if ks < 0 {
		return
	}
	var c candidate
	var o outcome
	if ent.kind == eFlag {
		c, o = readFlag(e.view.vis, i, ent.text, eof)
	} else {
		info := e.readName(ks, ent.text, int(ent.ref), eof)
		if o = info.outcome; o == found {
			c, o = readOperator(e.view.vis, &info, eof)
		}
	}
	switch {
	case o == found:
		e.schedule(c)
	case o == more:
		e.wait(i, ent)
	}
}

// wait remembers a name whose operator has not come yet. It holds nothing back.
func (e *engine) wait(i int, ent *entry) {
	for _, n := range e.names {
		if n.at == i && n.ent == *ent {
			return
		}
	}
	if len(e.names) < maxScheduled {
		e.names = append(e.names, pending{i, *ent})
	}
}

// readOperator reads what stands between a name and its value.
func readOperator(v []byte, info *nameInfo, eof bool) (candidate, outcome) {
	c := candidate{class: info.class, rule: info.rule, noTag: info.noTag}
	wait := more
	if eof {
		wait = no
	}
	p := info.end
	limit := p + maxDistance
	closed := false
	if p < len(v) && (v[p] == '\\' || v[p] == '"' || v[p] == '\'') {
		q, _, _ := readQuote(v, p)
		if q == p {
			if slashesToEnd(v, p) {
				return c, wait
			}
			return c, no
		}
		p, closed = q, true
	}
	if p < len(v) && v[p] == ']' {
		p++
	}
	tight := p
	for p < len(v) && p < limit && (v[p] == ' ' || v[p] == '\t') {
		p++
	}
	if p == len(v) || p+1 == len(v) && (v[p] == '=' || v[p] == ':') && !eof {
		return c, wait
	}
	if v[p] != ':' && c.class == classHeader {
		c.class = classWeak // a variable of that name
	}
	if v[p] == ':' && string(v[info.start:info.end]) == "PASS" {
		return c, no // a test result
	}
	switch {
	case v[p] == '=' && p+1 < len(v) && v[p+1] == '>':
		p += 2
	case v[p] == ':' && p+1 < len(v) && v[p+1] == '=':
		p += 2
	case v[p] == '=':
		if p+1 < len(v) && v[p+1] == '=' {
			return c, no
		}
		p++
		if info.start > 0 && (v[info.start-1] == '?' || v[info.start-1] == '&') {
			c.form = formQuery
		}
	case v[p] == ':':
		if p+1 < len(v) && v[p+1] == ':' {
			return c, no
		}
		p++
	case v[p] == ',' && closed && info.start > 1 && v[info.start-2] == '(': // define('DB_PASSWORD', '…')
		c.form = formArgument
		p++
	case v[p] == '>' && info.start > 0 && v[info.start-1] == '<':
		p++
		c.form = formXML
	case p > tight && info.end == tight && v[info.start] == '-':
		if v[p] == '-' {
			return c, no
		}
	case p > tight && info.end == tight && (v[tight] == '\t' || p-tight >= 2) && firstOnLine(v, info.start):
		c.form = formTable
	case p == tight+1 && info.rule == "password" && inNetrc(v, info.start):
	default:
		return c, no
	}
	if c.class == classQuery && c.form != formQuery {
		return c, no
	}
	for p < len(v) && p < limit && (v[p] == ' ' || v[p] == '\t') {
		p++
	}
	if p == len(v) {
		return c, wait
	}
	if p == limit || v[p] == '\n' || v[p] == '\r' {
		return c, no
	}
	if v[p] == '[' && c.class == classHeader { // a list of one, as in dumps of headers
		if p++; p == len(v) {
			return c, wait
		}
	}
	if c.form == formArgument {
		if v[p] != '"' && v[p] != '\'' {
			return c, no
		}
		c.form = formPlain
	}
	c.at = p
	return headerForm(c), found
}

// headerForm gives values of headers the form of their kind.
func headerForm(c candidate) candidate {
	switch c.class {
	case classHeader:
		c.form = formHeader
	case classCookie, classSetCookie:
		c.form = formCookie
	case classStrong:
		if c.rule == "header-key" && c.form == formPlain {
			c.form = formCookie
		}
	}
	return c
}

// maxSlashes is the deepest nesting of quotes that is followed.
const maxSlashes = 15

// readQuote reads a quote with the backslashes before it.
func readQuote(v []byte, p int) (int, byte, uint8) {
	q := p
	for q < len(v) && q-p < maxSlashes && v[q] == '\\' {
		q++
	}
	if q < len(v) && (v[q] == '"' || v[q] == '\'' || v[q] == '`' && q == p) {
		return q + 1, v[q], uint8(q - p)
	}
	return p, 0, 0
}

// slashesToEnd reports whether only backslashes are left: a quote may follow.
func slashesToEnd(v []byte, p int) bool {
	from := p
	for p < len(v) && v[p] == '\\' && p-from < maxSlashes {
		p++
	}
	return p == len(v)
}

func firstOnLine(v []byte, i int) bool {
	for i > 0 && (v[i-1] == ' ' || v[i-1] == '\t') {
		i--
	}
	return i == 0 || v[i-1] == '\n' || v[i-1] == '\r'
}

// inNetrc reports whether "login NAME" or "machine NAME" stands left of i.
func inNetrc(v []byte, i int) bool {
	words := 0
	for from := i; i > 0 && from-i < 96 && words < 6; i-- {
		if v[i-1] == ' ' || v[i-1] == '\n' || v[i-1] == '\t' {
			words++
			if hasFold(v[i:], "login ") || hasFold(v[i:], "machine ") {
				return true
			}
		}
	}
	return hasFold(v[i:], "login ") || hasFold(v[i:], "machine ")
}
