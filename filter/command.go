package filter

import (
	"bytes"
	"strings"
)

// arguments are the commands and calls that take a secret as an argument without a name: at
// the same place each time.
var arguments = [...]struct {
	text  string
	off   uint8 // the three bytes by which the index finds it
	arg   int   // counted from one, options apart
	need  byte  // a short option without which there is no secret
	user  byte  // user/SECRET
	call  bool  // the arguments stand between commas, and the secret in quotes
	doubt doubt
	stdin stdin
}{
	{"htpasswd ", 0, 3, 'b', 0, false, likely, 0},
	{"htpasswd ", 0, 2, 'n', 0, false, likely, 0},
	{"openssl passwd ", 5, 1, 0, 0, false, piped, 0},
	{"mosquitto_passwd ", 7, 3, 'b', 0, false, likely, 0},
	{"net user ", 4, 2, 0, 0, false, likely, 0},
	{"samba-tool user ", 3, 3, 0, 0, false, likely, 0},
	{"rabbitmqctl ", 0, 3, 0, 0, false, likely, 0},
	{"ctl register ", 0, 3, 0, 0, false, likely, 0},
	{"wpa_passphrase ", 0, 2, 0, 0, false, likely, 0},
	{"user set password ", 5, 2, 0, 0, false, likely, 0}, // of ipmitool
	{"sqlplus ", 2, 1, 0, '/', false, likely, 0},
	{"SQL> connect ", 0, 1, 0, '/', false, likely, 0},
	{"SQL> conn ", 0, 1, 0, '/', false, likely, 0},
	{"sqlldr ", 2, 1, 0, '/', false, likely, 0},
	{"impdp ", 2, 1, 0, '/', false, likely, 0},
	{"expdp ", 2, 1, 0, '/', false, likely, 0},
	{"vault login ", 6, 1, 0, 0, false, likely, 0},
	{"operator unseal ", 9, 1, 0, 0, false, likely, 0},
	{"wandb login ", 2, 1, 0, 0, false, likely, 0},
	{"cargo login ", 6, 1, 0, 0, false, likely, 0},
	{"snyk auth ", 1, 1, 0, 0, false, likely, 0},
	{"config set ", 0, 2, 0, 0, false, piped, 0}, // of npm, bundle and others
	{"config --global ", 9, 2, 0, 0, false, piped, 0},
	{"composer config ", 0, 2, 0, 0, false, piped, 0},
	{"poetry config ", 0, 2, 0, 0, false, piped, 0},
	{"radtest ", 0, 2, 0, 0, false, likely, 0},
	{"radtest ", 0, 5, 0, 0, false, likely, 0},
	{"net use ", 4, 1, 0, 0, false, likely, 0},
	{"net use ", 4, 2, 0, 0, false, likely, 0},
	{"net  use ", 5, 1, 0, 0, false, likely, 0}, // as Windows logs it
	{"net  use ", 5, 2, 0, 0, false, likely, 0},
	{"net  user ", 5, 2, 0, 0, false, likely, 0},
	{"alias set ", 3, 3, 0, 0, false, likely, 0}, // of mc
	{"alias set ", 3, 4, 0, 0, false, likely, 0},
	{"rclone obscure ", 1, 1, 0, 0, false, likely, 0},
	{"-command 'echo ", 2, 1, 0, 0, false, likely, 0}, // --password-command
	{"-command \"echo ", 2, 1, 0, 0, false, likely, 0},
	{"CLIENT_RANDOM ", 2, 2, 0, 0, false, likely, 0}, // what TLS libraries log for debuggers
	{"TRAFFIC_SECRET ", 3, 2, 0, 0, false, likely, 0},
	{"TRAFFIC_SECRET_0 ", 3, 2, 0, 0, false, likely, 0},
	{"EXPORTER_SECRET ", 1, 2, 0, 0, false, likely, 0},
	{"aad3b435b51404eeaad3b435b51404ee:", 0, 1, 0, 0, false, likely, 0}, // the hash behind the empty one of Windows
	{"$krb5tgs$", 1, 1, 0, 0, false, likely, 0},
	{"$krb5asrep$", 1, 1, 0, 0, false, likely, 0},
	{"pro attach ", 4, 1, 0, 0, false, likely, 0},
	{"db2 connect to ", 0, 5, 0, 0, false, likely, 0},
	{"db2 => connect to ", 0, 5, 0, 0, false, likely, 0},
	{".LOGON ", 3, 1, 0, ',', false, likely, 0},   // of Teradata
	{"sha1-96)  (", 4, 1, 0, 0, false, likely, 0}, // of klist, with keys
	{"createUser ", 2, 3, 0, 0, false, likely, 0}, // of SNMP
	{"createUser ", 2, 5, 0, 0, false, likely, 0},
	{"Input Password ", 8, 2, 0, 0, false, likely, 0}, // of Robot Framework
	{"sonar.login=", 0, 1, 0, 0, false, likely, 0},
	{": EAP ", 2, 1, 0, 0, false, likely, 0}, // of ipsec.secrets
	{": XAUTH ", 2, 1, 0, 0, false, likely, 0},
	{": RSA ", 2, 2, 0, 0, false, literal, 0},
	{"config): \"", 0, 1, 0, ':', false, likely, 0}, // of bundle
	{" on >", 2, 1, 0, 0, false, likely, 0},         // of Redis
	{" on #", 2, 1, 0, 0, false, likely, 0},
	{"redentials(", 2, 2, 0, 0, true, likely, 0}, // by how the name of a call ends
	{"redentials.new(", 2, 2, 0, 0, true, likely, 0},
	{"uth(", 0, 2, 0, 0, true, likely, 0},
	{"uthentication(", 0, 2, 0, 0, true, likely, 0},
	{"onnect(", 1, 3, 0, 0, true, likely, 0},
	{"onnection(", 1, 3, 0, 0, true, likely, 0},
	{"ogin(", 0, 2, 0, 0, true, likely, 0},
	{"bind(", 2, 2, 0, 0, true, likely, 0},
	{"bind_s(", 2, 2, 0, 0, true, likely, 0},
	{"mysqli(", 0, 3, 0, 0, true, likely, 0},
	{"PDO(", 0, 3, 0, 0, true, likely, 0},
	{"PDO->__construct(", 3, 3, 0, 0, true, likely, 0},
	{"egin(", 0, 2, 0, 0, true, piped, 0},
	{"wt.sign(", 0, 2, 0, 0, true, piped, 0},
	{"wt.encode(", 0, 2, 0, 0, true, piped, 0},
	{"reateHmac(", 1, 2, 0, 0, true, piped, 0},
	{"hmac.new(", 0, 1, 0, 0, true, piped, 0},
	{"Fernet(", 0, 1, 0, 0, true, piped, 0},
	{"arameters: (", 0, 1, 0, 0, true, piped, 0}, // what is bound to a statement in SQL
	{"arameters: $1 = ", 10, 1, 0, 0, true, piped, 0},
	{"arameters: [", 0, 1, 0, 0, true, piped, 0},
	{"args=(", 0, 1, 0, 0, true, piped, 0},
	{"s] (", 0, 1, 0, 0, true, piped, 0},
	{"] - [", 0, 1, 0, 0, false, piped, 0},
	{"AUTHENTICATE ", 3, 1, 0, 0, false, likely, 0},
	{"AUTHENTICATE PLAIN ", 3, 1, 0, 0, false, likely, 0},
	{"> AUTH ", 2, 1, 0, 0, false, likely, 0}, // at a prompt of Redis
	{"> AUTH ", 2, 2, 0, 0, false, likely, 0},
	{"PRAGMA key = ", 0, 1, 0, 0, false, likely, 0},
	{" inline:", 5, 1, 0, 0, false, random, 0}, // of SDP
	{":identify ", 3, 1, 0, 0, false, likely, 0},
	{"{PLAIN}", 1, 1, 0, 0, false, likely, 0}, // of Dovecot
	{"username=", 6, 1, 0, '%', false, piped, 0},
	{"basic_auth ", 5, 2, 0, 0, true, likely, 0},
	{"echo '", 0, 1, 0, ':', false, piped, 0}, // to chpasswd
	{"echo \"", 0, 1, 0, ':', false, piped, 0},
	{"send \"", 3, 1, 0, 0, false, piped, 0}, // of expect
	{"printf '%s\\n%s\\n' ", 5, 2, 0, 0, false, piped, 0},
	{"user = \"", 3, 1, 0, ':', false, piped, 0}, // of curl
	{"user=", 2, 1, 0, ':', false, piped, 0},
	{"AuthIdent: \"", 3, 1, 0, ':', false, likely, 0}, // of yarn
	{"]:587 ", 0, 1, 0, ':', false, likely, 0},        // of postfix
	{"PASSWORD ", 2, 3, 0, 0, false, likely, 0},       // PASSWORD elastic = value
	{"[+] ", 0, 1, 0, ':', false, piped, 0},           // of netexec
	{"set-initial-password ", 10, 1, 0, 0, false, likely, 0},
	{"message-digest-key ", 13, 3, 0, 0, false, likely, 0},
	{"pre-shared-key ", 9, 2, 0, 0, false, likely, 0},
	{" LOGIN ", 2, 2, 0, 0, false, likely, 0}, // of IMAP
	{"created token ", 9, 1, 0, 0, false, likely, 0},
	{"Appending key for ", 8, 2, 0, 0, false, likely, 0}, // of wandb
	{"New value: ", 2, 1, 0, 0, false, likely, 0},        // of elasticsearch-reset-password
	{"WPA;P:", 2, 1, 0, 0, false, likely, 0},             // in the QR code of a network
	{"\"d\":\"", 0, 1, 0, 0, false, random, 0},           // of a JWK, in front of its type
	{"\"d\": \"", 0, 1, 0, 0, false, random, 0},
	{"AKIA", 0, 1, 0, ':', false, random, 0}, // ID:SECRET
	{"Login: ", 1, 3, 0, 0, false, piped, 0}, // user / SECRET
	{"Login with ", 1, 1, 0, '/', false, piped, 0},
	{"Login with ", 1, 1, 0, ':', false, piped, 0},
	{"login with ", 1, 1, 0, ':', false, piped, 0},
	{"pw=", 0, 1, 0, 0, false, likely, 0}, // too short for a name
	{"pw: ", 0, 1, 0, 0, false, likely, 0},
	{"com2sec ", 3, 3, 0, 0, false, likely, 0}, // of SNMP, as below
	{"v2c -c ", 0, 1, 0, 0, false, likely, 0},
	{" 2c -c ", 1, 1, 0, 0, false, likely, 0},
	{"secret-tool lookup ", 15, onNextLine, 0, 0, false, lone, 0}, // what a store of secrets prints
	{"op read op:/", 8, onNextLine, 0, 0, false, lone, 0},
	{"op read \"op:/", 9, onNextLine, 0, 0, false, lone, 0},
	{"bw get ", 0, onNextLine, 0, 0, false, lone, 0},
	{" keygen", 1, onNextLine, 0, 0, false, lone, 0},
	{"keyring generate", 2, onNextLine, 0, 0, false, lone, 0},
	{"keyring get ", 2, onNextLine, 0, 0, false, lone, 0},
	{"kv get -field", 0, onNextLine, 0, 0, false, lone, 0},
	{"/run/secrets/", 5, onNextLine, 0, 0, false, lone, 0},
	{"http-basic.", 5, 3, 0, 0, false, likely, 0}, // of poetry
	{"chamber read ", 2, onNextLine, 0, 0, false, lone, 0},
	{"= Data =", 0, dataBelow, 0, 0, false, random, 0}, // of vault kv
	{"serv identify ", 9, 1, 0, 0, false, likely, 0},
	{"oracle:thin:", 5, 1, 0, '/', false, likely, 0},
	{"AUTHINFO PASS ", 3, 1, 0, 0, false, likely, 0},   // of NNTP
	{"IDENTIFY ", 4, 1, 0, 0, false, likely, 0},        // to a service of IRC
	{"Request: PASS ", 5, 1, 0, 0, false, likely, 0},   // in a dump of FTP
	{"command: /login ", 9, 1, 0, 0, false, likely, 0}, // typed into a game
	{"command: /register ", 10, 1, 0, 0, false, likely, 0},
	{"addlogin ", 1, 2, 0, 0, true, likely, 0},     // of SQL Server, without brackets
	{"-plain64 ", 2, 1, 0, 0, false, likely, 0},    // of a table of dm-crypt
	{"hooks/", 3, 1, behindURL, 0, false, lone, 0}, // the last part of an address that takes calls
	{"hook/", 2, 1, behindURL, 0, false, lone, 0},
	{"/invite/", 2, 1, behindURL, 0, false, lone, 0}, // who has such an address may do what it says
	{"/reset/", 2, 1, behindURL, 0, false, lone, 0},
	{"reset-password/", 8, 1, behindURL, 0, false, lone, 0},
	{"/verify-email/", 5, 1, behindURL, 0, false, lone, 0},
	{"/activate/", 4, 1, behindURL, 0, false, lone, 0},
	{"/magic/", 2, 1, behindURL, 0, false, lone, 0},
	{"/confirm/", 4, 1, behindURL, 0, false, lone, 0},
	{"?st=", 0, 1, behindURL, 0, false, lone, 0}, // of one that is signed and expires
	{"integrations/deploy/", 9, 1, behindURL, 0, false, lone, 0},
	{"echo ", 0, 1, 0, 0, false, likely, stdinBehind},
	{"printf ", 3, 2, 0, 0, false, likely, stdinBehind},
	{"<<< ", 0, 1, 0, 0, false, likely, stdinBefore},
}

// behindURL stands for an option in a row whose text counts in a URL only.
const behindURL = '/'

// onNextLine stands for an argument where the secret is what the command prints, dataBelow where it is in the
// second column of the rows below.
const (
	onNextLine = 0
	dataBelow  = -1
)

// readAnswer finds what stands below the line of i: what a command printed, or rows of data.
func (e *engine) readAnswer(c candidate, i, arg int, eof bool) (candidate, outcome) {
	s := scan{v: e.view.vis, p: i, eof: eof}
	if arg == onNextLine && !isPrompt(s.v[lineStart(s.v, max(0, i-maxName), i):i]) {
		return candidate{}, no
	}
	for s.more() && s.p-i < maxCommand && s.v[s.p] != '\n' {
		s.p++
	}
	if s.lit("\n") && s.more() {
		if c.at, c.front = s.p, echo; arg == dataBelow {
			c.front, c.form, c.row = nothing, formRow, column{kind: byWords, at: 1}
		}
		return c, found
	}
	if s.short {
		return candidate{}, more
	}
	return candidate{}, no
}

// A stdin says where the command stands that must read the argument as a secret from its standard
// input.
type stdin uint8

const (
	stdinBehind stdin = iota + 1 // behind a pipe
	stdinBefore                  // on the line in front
)

// stdinReaders are words of commands that read a secret, or user and secret, from standard input.
var stdinReaders = [...]struct {
	text string
	user bool // user:SECRET
}{
	{"chpasswd", true}, {"sudo -S", false}, {"-stdin", false}, {"passwd", false}, {"password-fd", false}, {"passphrase-fd", false}, {"cryptsetup", false}, {"kinit", false},
	{"pass insert", false}, {"with-token", false}, {"secret set", false}, {"secret put", false}, {"secret create", false}, {"secrets create", false}, {"secrets set", false},
	{"versions add", false}, {"secret-tool", false}, {"ssh-add", false}, {"login", false},
}

// judgeStdin judges an argument that is a secret if a command reads it: one behind a pipe, or the one
// whose line here goes on with it. Only what looks like a secret waits for the pipe.
func (e *engine) judgeStdin(c *candidate, eof bool) verdict {
	s := scan{v: e.view.vis, p: c.at, eof: eof}
	var quote byte
	if s.more() && (s.v[s.p] == '"' || s.v[s.p] == '\'') {
		quote = s.v[s.p]
		s.p++
	}
	from := s.p
	for s.more() && s.p-from < maxCommand && s.v[s.p] >= ' ' && s.v[s.p] != '\\' && s.v[s.p] != '$' && s.v[s.p] != quote && (quote != 0 || s.v[s.p] != ' ' && s.v[s.p] != '|' && s.v[s.p] != ';') {
		s.p++
	}
	end := s.p
	word := s.v[from:end]
	user := bytes.IndexByte(word, ':') + 1
	passes := func(val []byte) bool {
		return len(val) > 0 && e.set.passes(val, gate{class: c.class, doubt: c.doubt, rule: c.rule, quoted: true, opened: quote != 0})
	}
	if s.short {
		return verdict{outcome: more, loose: len(word) < loosePrefix || !unlikely(word)}
	}
	if !passes(word) && !(user > 0 && passes(word[user:])) || quote != 0 && s.at() != quote {
		return verdict{}
	}
	var command []byte
	if stdin(c.number) == stdinBefore {
		command = s.v[lineStart(s.v, max(0, c.at-maxCommand), c.at):c.at]
	} else {
		if quote != 0 {
			s.p++
		}
		if s.blanks(); s.more() && s.v[s.p] == '|' {
			at := s.p + 1
			for s.p++; s.more() && s.p-at < maxCommand && s.v[s.p] >= ' ' && s.v[s.p] != '|' && s.v[s.p] != ';' && s.v[s.p] != '&'; {
				s.p++
			}
			command = s.v[at:s.p]
		}
		if s.short {
			return verdict{outcome: more}
		}
		if line := s.v[max(0, c.at-maxName):c.at]; len(command) == 0 && s.at() == '\n' && bytes.HasPrefix(line[bytes.LastIndexByte(line, '\n')+1:], []byte("+ ")) {
			// set -x shows each part of a pipe on a line of its own.
			at := s.p + 1
			for s.p++; s.more() && s.p-at < maxCommand && s.v[s.p] >= ' '; {
				s.p++
			}
			if s.short {
				return verdict{outcome: more}
			}
			if command = s.v[at:s.p]; !bytes.HasPrefix(command, []byte("+ ")) {
				return verdict{}
			}
		}
	}
	for _, r := range stdinReaders {
		if !bytes.Contains(command, []byte(r.text)) {
			continue
		}
		if r.user {
			from, word = from+user, word[user:]
		}
		if !passes(word) {
			break
		}
		return verdict{outcome: found, layer: layerContext, start: from, end: end, rule: c.rule, noTag: c.noTag, learn: true}
	}
	return verdict{}
}

// readArgument finds the argument of row k of arguments, whose text begins at i.
func (e *engine) readArgument(k, i int, eof bool) (candidate, outcome) {
	e.work++
	row := &arguments[k]
	if row.need == behindURL && !inURL(e.view.vis, i) {
		return candidate{}, no
	}
	if v := e.view.vis; i > 0 && isAlnum(v[i-1]) && isAlnum(row.text[0]) && !row.call && row.need != behindURL && !(v[i-1] == 'D' && i > 1 && v[i-2] == '-') && row.text[0] != 'U' && row.text[0] != 'A' {
		return candidate{}, no
	}
	s := scan{v: e.view.vis, p: i + len(row.text), eof: eof}
	c := candidate{class: classStrong, doubt: row.doubt, rule: "password", noTag: true, word: true}
	if row.doubt == random {
		c.rule, c.noTag = "secret-key", false
	}
	if row.arg <= onNextLine {
		c.rule, c.word = "secret", false
		return e.readAnswer(c, i+len(row.text), row.arg, eof)
	}
	if last := row.text[len(row.text)-1]; last == '"' || last == '\'' {
		s.p-- // the quote is part of the argument
	}
	limit, needed := i+maxCommand, row.need == 0 || row.need == behindURL
	for n := 1; ; {
		if s.blanks(); !s.more() || s.p > limit || s.v[s.p] < ' ' {
			break
		}
		from := s.p
		option := !row.call && s.v[from] == '-'
		if row.text[0] == 'n' && row.text[1] == 'e' { // of Windows: /user:NAME, and the share
			option = s.v[from] == '/' || s.v[from] == '\\'
		}
		if option || n < row.arg {
			if !s.argument(row.call, limit) {
				break
			}
			if option {
				needed = needed || bytes.IndexByte(s.v[from:s.p], row.need) >= 0
			} else {
				n++
			}
			continue
		}
		c.at = from
		if row.user != 0 {
			c.form, c.number = formUser, int(row.user)
		}
		if row.call {
			// The secret may be a later one; what is no literal is passed over.
			if c, ok := s.literal(c); ok {
				c.doubt, c.list = row.doubt, true
				return c, found
			}
			if s.short || !s.argument(true, limit) {
				break
			}
			continue
		}
		if !needed {
			return candidate{}, no
		}
		if row.need == behindURL {
			c.form, c.rule, c.noTag = formPercent, "secret", false
		}
		if row.stdin != 0 {
			c.form, c.number = formStdin, int(row.stdin)
		}
		return c, found
	}
	if s.short {
		return candidate{}, more
	}
	return candidate{}, no
}

// inURL reports whether "://" and nothing but a URL stand left of i.
func inURL(v []byte, i int) bool {
	from := i
	for from > 0 && i-from < history && v[from-1] > ' ' && strings.IndexByte("\"'<>`", v[from-1]) < 0 {
		from--
	}
	return bytes.Contains(v[from:i], []byte("://"))
}

// argument passes over an argument and the comma behind it in a call.
func (s *scan) argument(call bool, limit int) bool {
	for quote := byte(0); s.more() && s.p < limit; s.p++ {
		switch c := s.v[s.p]; {
		case c < ' ':
			return false
		case c == '\\' && quote != 0:
			s.p++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case call && (c == ')' || c == ';'), !call && (c == '|' || c == '&' || c == ';'):
			return false
		case call && c == ',':
			s.p++
			return true
		case !call && c == ' ':
			return true
		}
	}
	return false
}
