package filter

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// maxCommand is how far left of an option its command may stand.
const maxCommand = 200

// flags are the short options, and the long ones without a name that says so, in which a
// few tools take secrets.
var flags = [...]struct {
	flag     string
	commands string // separated by commas
	attached bool   // -pSECRET
	spaced   bool   // -p SECRET
	user     byte   // user:SECRET, user%SECRET, user,SECRET
}{
	{" -p", "sshpass,mysql,mysqldump,mariadb,mariadb-dump,mysqladmin,7z,7za,7zr,zip,mongo,mongodump,mongorestore", true, false, 0},
	{" -p", "sshpass,unlock-keychain,create-keychain,docker login,podman login,helm registry login,buildah login,skopeo login,az login,oc login,mongosh,mongo", false, true, 0},
	{" -u", "curl", true, true, ':'},
	{" -u", "http,https", false, true, ':'},
	{" -a", "http,https,xh,curlie,hey,wrk,oha", false, true, ':'},
	{" -A", "ab", false, true, ':'},
	{" -pw", "addprinc,change_password,cpw,plink,pscp,psftp,putty,ank", false, true, 0},
	{" --base64", "virsh", false, true, 0},
	{" -setcookie", "erl,iex,elixir,werl", false, true, 0},
	{" -s", "ldappasswd", false, true, 0},
	{" /p:", "xfreerdp,wfreerdp,mstsc", true, false, 0},
	{" --user", "curl,etcdctl", false, true, ':'},
	{" -U", "curl", false, true, ':'},
	{" --proxy-user", "curl", false, true, ':'},
	{" -U", "smbclient,rpcclient,net", false, true, '%'},
	{" -a", "redis-cli", false, true, 0},
	{" -w", "ldapsearch,ldapmodify,ldapadd,ldapdelete,ldapwhoami,ldappasswd", false, true, 0},
	{" -P", "sqlcmd,bcp,isql,unzip,zip,ipmitool,snmpget,snmpwalk,mosquitto_pub,mosquitto_sub,ssh-keygen", true, true, 0},
	{" -p", "remote login,cf login,jf login,crc login,mcrcon,evil-winrm", false, true, 0},
	{" -K", "openssl enc", false, true, 0},
	{" -k", "openssl enc", false, true, 0},
	{" -N", "ssh-keygen", false, true, 0},
	{" -A", "snmpget,snmpwalk,snmpset,snmpbulkwalk", false, true, 0},
	{" -X", "snmpget,snmpwalk,snmpset,snmpbulkwalk", false, true, 0},
	{" /rp", "schtasks", false, true, 0},
	{" -u", "lftp,open", false, true, ','},
	{" -b", "curl", false, true, '='},
	{" -y", "nsupdate,dig,delv", false, true, ':'},
	{" --value", "secret set,secrets set", false, true, 0},
	{" -hp", "rar", true, false, 0},
	{" -t ", "", true, false, 0},
	{"\"-p", "", true, false, 0},
	{"'-p", "", true, false, 0},
	{"\x00-u", "", true, false, 0},
	{" -pass ", "", true, false, 0},
	{" /p ", "", true, false, 0},
}

// readFlag looks at an option or a mark of a file format at i: the value behind it is a
// secret if the command on this line is one of the few that take it there.
func (e *engine) readFlag(i int, flag string, eof bool) (candidate, outcome) {
	e.work += 4
	v := e.view.vis
	p := i + len(flag)
	if p >= len(v) {
		if eof {
			return candidate{}, no
		}
		return candidate{}, more
	}
	if flag[0] == ':' {
		return pgpassLine(v, i, flag)
	}
	if i == 0 || v[p] == '-' {
		return candidate{}, no
	}
	if v[p] == '=' { // -k=value
		if flag[0] != ' ' {
			return candidate{}, no
		}
		if p++; p >= len(v) {
			if eof {
				return candidate{}, no
			}
			return candidate{}, more
		}
		return e.readOption(candidate{at: p, class: classStrong, rule: "password", noTag: true, word: true}, i, flag, false, false, eof)
	}
	mask := e.commandsBefore(i)
	c := candidate{at: p, class: classStrong, rule: "password", noTag: true, word: true}
	spaced := v[p] == ' ' || v[p] == 0
	quoted := flag[0] == '"' || flag[0] == '\''
	if quoted && v[p] == flag[0] { // "-p", "value"
		s := scan{v: v, p: p + 1, eof: eof}
		s.lit(",")
		s.space()
		if s.short || !s.more() {
			if s.short {
				return candidate{}, more
			}
			return candidate{}, no
		}
		if c.at = s.p - 1; v[s.p] != flag[0] {
			return candidate{}, no
		}
		spaced = true
	}
	if flag[0] != ' ' {
		flag = " " + flag[1:] // as if a blank was there
	}
	if mask == 0 {
		return e.readOption(c, i, flag, spaced, quoted, eof)
	}
	for k := range flags {
		f := &flags[k]
		if f.flag != flag || spaced && !f.spaced || !spaced && !f.attached || mask&(1<<k) == 0 {
			continue
		}
		if f.user != 0 {
			c.form, c.number = formUser, int(f.user)
		}
		if spaced {
			if c.at++; c.at >= len(v) && !eof {
				return candidate{}, more
			}
		}
		return c, found
	}
	return e.readOption(c, i, flag, spaced, quoted, eof)
}

// passwordOptions are options that take a password in so many commands that a value which looks
// like nothing else is one, whatever the command.
var passwordOptions = [...]string{" -p", " -P", " -w", " -k", " -K", " -pw", " -t ", " -pass ", " /p ", " /p:"}

// readOption reads the value of an option of a command that is not known, behind c.at, or of one
// in a list of arguments that are in quotes.
func (e *engine) readOption(c candidate, i int, flag string, spaced, quoted, eof bool) (candidate, outcome) {
	v := e.view.vis
	if quoted && !spaced && (v[c.at] == '"' || v[c.at] == '\'') || !slices.Contains(passwordOptions[:], flag) {
		return candidate{}, no
	}
	if c.doubt = piped; spaced {
		if c.at++; c.at >= len(v) && !eof {
			return candidate{}, more
		}
		if userBefore(v, i) {
			c.doubt = likely
		}
	}
	return c, found
}

// userBefore reports whether "-u NAME" or "--user NAME" ends at i: -p takes the password then,
// whatever the command.
func userBefore(v []byte, i int) bool {
	from := i
	for from > 0 && i-from < maxName && (isIdent(v[from-1]) || v[from-1] == '@' || v[from-1] == '\\') {
		from--
	}
	left := v[max(0, from-12):from]
	for _, f := range [...]string{" -u ", " -U ", " --user ", " --username "} {
		if from < i && bytes.HasSuffix(left, []byte(f)) {
			return true
		}
	}
	return false
}

// commandMemo remembers which rows of flags have a command on the line, so far.
type commandMemo struct {
	at   int // read up to here
	mask uint64
}

// commandsBefore returns the rows of flags whose command stands on the line left of i.
func (e *engine) commandsBefore(i int) uint64 {
	v, m := e.view.vis, &e.commands
	from := max(0, i-maxCommand)
	if m.at > from && m.at <= i {
		from = m.at
	} else {
		m.mask = 0
	}
	if nl := lineStart(v, from, i); nl > from {
		from, m.mask = nl, 0
	}
	for k := from; k < i; k++ {
		if k > 0 && k != e.edge && (isAlnum(v[k-1]) || v[k-1] == '-') || !isLower(v[k]) && v[k] != '7' {
			continue
		}
		for _, c := range flagCommands()[v[k]&31] {
			if n := len(c.name); k+n <= i && string(v[k:k+n]) == c.name && (k+n == i || v[k+n] == ' ' || v[k+n] == 0 || v[k+n] == '"' || v[k+n] == '\'') {
				m.mask |= c.rows
			}
		}
	}
	// The last word may go on behind i.
	m.at = i
	for m.at > 0 && isAlnum(v[m.at-1]) {
		m.at--
	}
	return m.mask
}

// lineStart returns where the command line that holds i begins, or from: a backslash at its end
// continues a line.
func lineStart(v []byte, from, i int) int {
	for end := i; ; {
		nl := from + bytes.LastIndexByte(v[from:end], '\n')
		if nl < from {
			return from
		}
		if before := bytes.TrimSuffix(v[:nl], []byte("\r")); len(before) == 0 || before[len(before)-1] != '\\' {
			return nl + 1
		}
		end = nl
	}
}

// flagCommand is a command of flags and the rows that name it.
type flagCommand struct {
	name string
	rows uint64
}

// flagCommands are the commands of flags by their first letter.
var flagCommands = sync.OnceValue(func() *[32][]flagCommand {
	out := new([32][]flagCommand)
	for r := range flags {
		for name := range strings.SplitSeq(flags[r].commands, ",") {
			if name == "" {
				continue // any
			}
			list := &out[name[0]&31]
			k := slices.IndexFunc(*list, func(c flagCommand) bool { return c.name == name })
			if k < 0 {
				k = len(*list)
				*list = append(*list, flagCommand{name: name})
			}
			(*list)[k].rows |= 1 << r
		}
	}
	return out
})

// userValue skips "user:".
func userValue(v []byte, p int, sep byte, eof bool) (int, outcome) {
	q := p
	for q < len(v) && q-p < 128 && v[q] > ' ' && v[q] != sep && v[q] != '"' && v[q] != '\'' {
		q++
	}
	if sep == ':' && q > p && isUser(v[p:q]) { // user / value
		n := min(len(" / "), len(v)-q)
		if string(v[q:q+n]) == " / "[:n] && (n == 3 || !eof) {
			return q + n, [...]outcome{more, more, more, found}[n]
		}
	}
	switch {
	case q == len(v) && !eof:
		return p, more
	case q == len(v) || v[q] != sep || q == p && sep != ':':
		return p, no
	}
	return q + 1, found
}

// pgpassLine looks at the port of a line "host:port:database:user:password".
func pgpassLine(v []byte, i int, flag string) (candidate, outcome) {
	from := i
	for from > 0 && i-from < maxName && (isIdent(v[from-1]) || v[from-1] == '*') {
		from--
	}
	if from == i || from > 0 && v[from-1] != '\n' {
		return candidate{}, no
	}
	return candidate{at: i + len(flag), form: formPgpass, class: classStrong, rule: "password", noTag: true}, found
}

// judgePgpass judges the rest of such a line, from its database on.
func (e *engine) judgePgpass(c *candidate, eof bool) verdict {
	v, p := e.view.vis, c.at
	for range 2 {
		from := p
		for p < len(v) && p-from < maxName && (isIdent(v[p]) || v[p] == '*' || v[p] == '@') {
			p++
		}
		if p == len(v) {
			return undecided(eof, true)
		}
		if p == from || v[p] != ':' {
			return verdict{}
		}
		p++
	}
	end := p
	for end < len(v) && end-p < maxName && v[end] > ' ' {
		end++
	}
	if end == len(v) && !eof {
		return verdict{outcome: more, loose: end-p < loosePrefix}
	}
	val := v[p:end]
	if end < len(v) && v[end] != '\n' && v[end] != '\r' || len(val) < 8 ||
		!e.set.passes(val, gate{class: classStrong, rule: c.rule, quoted: true}) {
		return verdict{}
	}
	return verdict{outcome: found, layer: layerContext, start: p, end: end, rule: c.rule, noTag: true}
}
