package filter

import "bytes"

// arguments are the commands and calls that take a secret as an argument without a name: at
// the same place each time.
var arguments = [...]struct {
	text string
	off  uint8 // the three bytes by which the index finds it
	arg  int   // counted from one, options apart
	need byte  // a short option without which there is no secret
	user byte  // user/SECRET
	call bool  // the arguments stand between commas, and the secret in quotes
}{
	{"htpasswd ", 0, 3, 'b', 0, false},
	{"mosquitto_passwd ", 7, 3, 'b', 0, false},
	{"net user ", 4, 2, 0, 0, false},
	{"samba-tool user create ", 3, 2, 0, 0, false},
	{"samba-tool user add ", 3, 2, 0, 0, false},
	{"rabbitmqctl add_user ", 5, 2, 0, 0, false},
	{"rabbitmqctl change_password ", 5, 2, 0, 0, false},
	{"ejabberdctl register ", 0, 3, 0, 0, false},
	{"prosodyctl register ", 0, 3, 0, 0, false},
	{"wpa_passphrase ", 0, 2, 0, 0, false},
	{"user set password ", 5, 2, 0, 0, false}, // of ipmitool
	{"sqlplus ", 2, 1, 0, '/', false},
	{"sqlldr ", 2, 1, 0, '/', false},
	{"expdp ", 2, 1, 0, '/', false},
	{"impdp ", 2, 1, 0, '/', false},
	{"vault login ", 6, 1, 0, 0, false},
	{"operator unseal ", 9, 1, 0, 0, false},
	{"wandb login ", 2, 1, 0, 0, false},
	{"cargo login ", 6, 1, 0, 0, false},
	{"snyk auth ", 1, 1, 0, 0, false},
	{"config http-basic.", 7, 3, 0, 0, false}, // of composer and poetry
	{"config pypi-token.", 7, 2, 0, 0, false},
	{"radtest ", 0, 2, 0, 0, false},
	{"radtest ", 0, 5, 0, 0, false},
	{"net use ", 4, 4, 0, 0, false},
	{"createUser ", 2, 3, 0, 0, false}, // of SNMP
	{"createUser ", 2, 5, 0, 0, false},
	{"Input Password ", 8, 2, 0, 0, false}, // of Robot Framework
	{"sonar.login=", 0, 1, 0, 0, false},
	{": EAP ", 2, 1, 0, 0, false}, // of ipsec.secrets
	{": XAUTH ", 2, 1, 0, 0, false},
	{" on >", 2, 1, 0, 0, false}, // of Redis
	{" on #", 2, 1, 0, 0, false},
	{"Credentials(", 8, 4, 0, 0, true}, // of sbt
	{"PDO->__construct(", 3, 3, 0, 0, true},
	{"BasicAuth(", 6, 2, 0, 0, true},
	{"basic_auth(", 5, 2, 0, 0, true},
	{"basic_auth ", 5, 2, 0, 0, true},
	{"DigestAuth(", 7, 2, 0, 0, true},
	{"PlainAuth(", 6, 3, 0, 0, true},
	{"getConnection(", 2, 3, 0, 0, true},
	{"PasswordAuthentication(", 7, 2, 0, 0, true},
	{"UsernamePasswordAuthenticationToken(", 7, 2, 0, 0, true},
	{"UsernamePasswordCredentials(", 7, 2, 0, 0, true},
	{"NetworkCredential(", 6, 2, 0, 0, true},
	{"simple_bind_s(", 6, 2, 0, 0, true},
	{"ldap_bind(", 2, 3, 0, 0, true},
	{"mysqli(", 0, 3, 0, 0, true},
	{"mysqli_connect(", 2, 3, 0, 0, true},
	{"mysql_connect(", 2, 3, 0, 0, true},
	{"new PDO(", 3, 3, 0, 0, true},
	{".login(", 4, 2, 0, 0, true},
	{".auth(", 2, 2, 0, 0, true},
	{"echo '", 0, 1, 0, ':', false}, // to chpasswd
	{"echo \"", 0, 1, 0, ':', false},
}

// readArgument finds the argument of row k of arguments, whose text begins at i.
func (e *engine) readArgument(k, i int, eof bool) (candidate, outcome) {
	e.work++
	row := &arguments[k]
	if i > 0 && isAlnum(e.view.vis[i-1]) && !row.call {
		return candidate{}, no
	}
	s := scan{v: e.view.vis, p: i + len(row.text), eof: eof}
	c := candidate{class: classStrong, doubt: likely, rule: "password", noTag: true, word: true}
	if row.text[0] == 'e' && row.text[1] == 'c' {
		s.p-- // the quote is part of the argument
		c.doubt = piped
	}
	limit, needed := i+maxCommand, row.need == 0
	for n := 1; ; {
		if s.blanks(); !s.more() || s.p > limit || s.v[s.p] < ' ' {
			break
		}
		from := s.p
		if option := !row.call && s.v[from] == '-'; option || n < row.arg {
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
			if c, ok := s.literal(c); ok {
				return c, found
			}
			break
		}
		if !needed {
			return candidate{}, no
		}
		return c, found
	}
	if s.short {
		return candidate{}, more
	}
	return candidate{}, no
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
