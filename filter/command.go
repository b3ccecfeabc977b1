package filter

import "bytes"

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
}{
	{"htpasswd ", 0, 3, 'b', 0, false, likely},
	{"mosquitto_passwd ", 7, 3, 'b', 0, false, likely},
	{"net user ", 4, 2, 0, 0, false, likely},
	{"samba-tool user create ", 3, 2, 0, 0, false, likely},
	{"samba-tool user add ", 3, 2, 0, 0, false, likely},
	{"rabbitmqctl add_user ", 5, 2, 0, 0, false, likely},
	{"rabbitmqctl change_password ", 5, 2, 0, 0, false, likely},
	{"ejabberdctl register ", 0, 3, 0, 0, false, likely},
	{"prosodyctl register ", 0, 3, 0, 0, false, likely},
	{"wpa_passphrase ", 0, 2, 0, 0, false, likely},
	{"user set password ", 5, 2, 0, 0, false, likely}, // of ipmitool
	{"sqlplus ", 2, 1, 0, '/', false, likely},
	{"sqlldr ", 2, 1, 0, '/', false, likely},
	{"expdp ", 2, 1, 0, '/', false, likely},
	{"impdp ", 2, 1, 0, '/', false, likely},
	{"vault login ", 6, 1, 0, 0, false, likely},
	{"operator unseal ", 9, 1, 0, 0, false, likely}, // of vault
	{"wandb login ", 2, 1, 0, 0, false, likely},
	{"cargo login ", 6, 1, 0, 0, false, likely},
	{"snyk auth ", 1, 1, 0, 0, false, likely},
	{"config http-basic.", 7, 3, 0, 0, false, likely}, // of composer and poetry
	{"config pypi-token.", 7, 2, 0, 0, false, likely},
	{"radtest ", 0, 2, 0, 0, false, likely},
	{"radtest ", 0, 5, 0, 0, false, likely},
	{"net use ", 4, 4, 0, 0, false, likely},
	{"createUser ", 2, 3, 0, 0, false, likely}, // of SNMP
	{"createUser ", 2, 5, 0, 0, false, likely},
	{"Input Password ", 8, 2, 0, 0, false, likely}, // of Robot Framework
	{"sonar.login=", 0, 1, 0, 0, false, likely},
	{": EAP ", 2, 1, 0, 0, false, likely}, // of ipsec.secrets
	{": XAUTH ", 2, 1, 0, 0, false, likely},
	{" on >", 2, 1, 0, 0, false, likely}, // of Redis
	{" on #", 2, 1, 0, 0, false, likely},
	{"Credentials(", 8, 4, 0, 0, true, likely}, // of sbt
	{"PDO->__construct(", 3, 3, 0, 0, true, likely},
	{"BasicAuth(", 6, 2, 0, 0, true, likely},
	{"basic_auth(", 5, 2, 0, 0, true, likely},
	{"basic_auth ", 5, 2, 0, 0, true, likely},
	{"DigestAuth(", 7, 2, 0, 0, true, likely},
	{"PlainAuth(", 6, 3, 0, 0, true, likely},
	{"getConnection(", 2, 3, 0, 0, true, likely},
	{"PasswordAuthentication(", 7, 2, 0, 0, true, likely},
	{"UsernamePasswordAuthenticationToken(", 7, 2, 0, 0, true, likely},
	{"UsernamePasswordCredentials(", 7, 2, 0, 0, true, likely},
	{"NetworkCredential(", 6, 2, 0, 0, true, likely},
	{"simple_bind_s(", 6, 2, 0, 0, true, likely},
	{"ldap_bind(", 2, 3, 0, 0, true, likely},
	{"mysqli(", 0, 3, 0, 0, true, likely},
	{"mysqli_connect(", 2, 3, 0, 0, true, likely},
	{"mysql_connect(", 2, 3, 0, 0, true, likely},
	{"new PDO(", 3, 3, 0, 0, true, likely},
	{".login(", 4, 2, 0, 0, true, likely},
	{".auth(", 2, 2, 0, 0, true, likely},
	{"echo '", 0, 1, 0, ':', false, piped}, // to chpasswd
	{"echo \"", 0, 1, 0, ':', false, piped},
	{"send \"", 3, 1, 0, 0, false, piped}, // of expect
	{"printf '%s\\n%s\\n' ", 5, 2, 0, 0, false, piped},
	{"user = \"", 3, 1, 0, ':', false, piped}, // of curl
	{"user=", 2, 1, 0, ':', false, piped},
	{"USERPWD, \"", 3, 1, 0, ':', false, likely},
	{"AuthIdent: \"", 3, 1, 0, ':', false, likely}, // of yarn
	{"]:587 ", 0, 1, 0, ':', false, likely},        // of postfix
	{"]:465 ", 0, 1, 0, ':', false, likely},
	{"PASSWORD ", 2, 3, 0, 0, false, likely}, // PASSWORD elastic = value
	{"[+] ", 0, 1, 0, ':', false, piped},     // of netexec
	{"set-initial-password ", 10, 1, 0, 0, false, likely},
	{"message-digest-key ", 13, 3, 0, 0, false, likely},
	{"pre-shared-key ascii-text ", 9, 1, 0, 0, false, likely},
	{"pre-shared-key hexadecimal ", 9, 1, 0, 0, false, likely},
	{" LOGIN ", 2, 2, 0, 0, false, likely}, // of IMAP
	{"created token ", 9, 1, 0, 0, false, likely},
	{"Appending key for ", 8, 2, 0, 0, false, likely},        // of wandb
	{"Key Content            : ", 2, 1, 0, 0, false, likely}, // of netsh
	{"New value: ", 2, 1, 0, 0, false, likely},               // of elasticsearch-reset-password
	{"WPA;P:", 2, 1, 0, 0, false, likely},                    // in the QR code of a network
	{"\"d\":\"", 0, 1, 0, 0, false, random},                  // of a JWK
	{"\"d\": \"", 0, 1, 0, 0, false, random},
}

// readArgument finds the argument of row k of arguments, whose text begins at i.
func (e *engine) readArgument(k, i int, eof bool) (candidate, outcome) {
	e.work++
	row := &arguments[k]
	if v := e.view.vis; i > 0 && isAlnum(v[i-1]) && isAlnum(row.text[0]) && !row.call && !(v[i-1] == 'D' && i > 1 && v[i-2] == '-') && row.text[0] != 'U' && row.text[0] != 'A' {
		return candidate{}, no
	}
	s := scan{v: e.view.vis, p: i + len(row.text), eof: eof}
	c := candidate{class: classStrong, doubt: row.doubt, rule: "password", noTag: true, word: true}
	if last := row.text[len(row.text)-1]; last == '"' || last == '\'' {
		s.p-- // the quote is part of the argument
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
