package filter

import (
	"bytes"
	"strings"
	"sync"
)

// class is how much the name left of a value says.
type class uint8

const (
	classNone      class = iota
	classQuery           // code and key in a query: only unlikely values
	classRaw             // primary_key: only a key as clouds make them
	classKey             // …_KEY: only unlikely values, digests and UUIDs
	classWeak            // token, auth, sig: the value must look random
	classStrong          // password, secret, api key
	classHeader          // Authorization: all but the scheme
	classCookie          // each pair
	classSetCookie       // the first pair
	classShape           // a vendor: the value must have the shape of its rule
	classCodes           // recovery codes, which stand in a list
	classPin             // a few digits
	classGroups          // a licence, in groups of letters and digits
	classExtra           // names that policy lists
)

// keyword is a last word of names.
type keyword struct {
	word  string
	off   uint8 // the three bytes by which the index finds it: those that are rarest in build logs
	class class // without a qualifier
	glued bool  // counts inside a longer word too, as in dbpassword
	noTag bool  // people choose it: it could be guessed against its tag
	rule  string
	// where it makes the value of an environment variable a known one
	variable variable
}

// variable says where in the name of an environment variable a word counts. There it says more
// than in a text: nearly all who name a variable so put a secret into it.
type variable uint8

const (
	anywhere variable = 1 + iota
	atEnd             // as the last word
)

// keywords are the words that decide, and what they say alone. The words before them can
// say more: see qualifiers.
var keywords = [...]keyword{
	{"password", 2, classStrong, true, true, "password", anywhere}, // ssw
	{"passwd", 2, classStrong, true, true, "password", anywhere},
	{"connection_string", 9, classWeak, true, false, "secret", anywhere},
	{"passwords", 2, classStrong, true, true, "password", 0},
	{"passphrase", 5, classStrong, true, true, "passphrase", anywhere}, // hra
	{"pass_phrase", 6, classStrong, true, true, "passphrase", 0},
	{"bindpw", 2, classStrong, true, true, "password", 0},
	{"rootpw", 2, classStrong, true, true, "password", 0},
	{"authtok", 2, classStrong, true, true, "password", 0},
	{"securestring", 3, classStrong, true, true, "password", 0},
	{"community", 2, classWeak, true, true, "password", 0},  // mmu: of SNMP
	{"passcode", 3, classStrong, true, true, digitsRule, 0}, // sco
	{"passwort", 2, classStrong, true, true, "password", anywhere},
	{"passwordsalt", 7, classStrong, true, false, "secret", 0},
	{"key content", 2, classStrong, false, true, digitsRule, 0}, // of netsh
	{"schlüsselinhalt", 11, classStrong, true, true, digitsRule, 0},
	{"contenido de la clave", 5, classStrong, false, true, digitsRule, 0},
	{"einmalpasswort", 8, classStrong, true, true, digitsRule, 0},
	{"einmalkennwort", 7, classStrong, true, true, digitsRule, 0},
	{"spare4", 3, classStrong, false, true, "password", 0}, // of Oracle
	{"csrf", 0, classWeak, false, false, "token", 0},
	{"xsrf", 0, classWeak, false, false, "token", 0},
	{"contraseña", 6, classStrong, true, true, "password", 0}, // password, in other languages
	{"mot de passe", 2, classStrong, true, true, "password", 0},
	{"kennwort", 1, classStrong, true, true, "password", 0},
	{"salasana", 3, classStrong, true, true, "password", 0},
	{"senha", 2, classStrong, false, true, "password", 0},
	{"heslo", 1, classStrong, false, true, "password", 0},
	{"parola", 3, classStrong, false, true, "password", 0},
	{"şifre", 0, classStrong, false, true, "password", 0},
	{"암호", 0, classStrong, true, true, "password", 0},
	{"wachtwoord", 2, classStrong, true, true, "password", 0},
	{"adgangskode", 1, classStrong, true, true, "password", 0},
	{"lösenord", 1, classStrong, true, true, "password", 0},
	{"hasło", 2, classStrong, true, true, "password", 0},
	{"jelszó", 2, classStrong, true, true, "password", 0},
	{"ароль", 0, classStrong, true, true, "password", 0}, // П and п differ by more than a bit
	{"ароля", 0, classStrong, true, true, "password", 0},
	{"adgangskoden", 1, classStrong, true, true, "password", 0},
	{"lösenordet", 1, classStrong, true, true, "password", 0},
	{"passordet", 3, classStrong, true, true, "password", 0},
	{"mdp", 0, classStrong, false, true, "password", 0},
	{"passord", 3, classStrong, true, true, "password", 0},
	{"lozinka", 2, classStrong, false, true, "password", 0},
	{"geslo", 1, classStrong, false, true, "password", 0},
	{"palavra-passe", 2, classStrong, false, true, "password", 0},
	{"kata sandi", 2, classStrong, false, true, "password", 0},
	{"mật khẩu", 1, classStrong, false, true, "password", 0},
	{"κωδικός", 0, classStrong, false, true, "password", 0},
	{"סיסמה", 0, classStrong, true, true, "password", 0},
	{"पासवर्ड", 0, classStrong, true, true, "password", 0},
	{"كلمة المرور", 0, classStrong, true, true, "password", 0},
	{"รหัสผ่าน", 0, classStrong, true, true, "password", 0},
	{"密码", 0, classStrong, true, true, "password", 0},
	{"密碼", 0, classStrong, true, true, "password", 0},
	{"密钥", 0, classStrong, true, false, "secret-key", 0},
	{"パスワード", 0, classStrong, true, true, "password", 0},
	{"비밀번호", 0, classStrong, true, true, "password", 0},
	{"Şifre", 0, classStrong, false, true, "password", 0},
	{"люч доступа", 0, classStrong, true, false, "secret-key", 0},
	{"clave secreta", 1, classStrong, false, false, "secret-key", 0},
	{"clave de acceso", 1, classStrong, false, false, "secret-key", 0},
	{"chiave segreta", 2, classStrong, false, false, "secret-key", 0},
	{"clé secrète", 0, classStrong, false, false, "secret-key", 0},
	{"ugfzc3dvcmq6", 0, classStrong, true, true, "password", 0}, // Password: as servers of SMTP ask for it
	{"pswd", 0, classStrong, true, true, "password", 0},
	{"passwrd", 3, classStrong, true, true, "password", 0},
	{"creds", 2, classWeak, true, false, "credential", 0},
	{"plaintext", 1, classRaw, false, false, "secret-key", 0}, // lai: what key services print beside the encrypted key
	{"key-string", 1, classStrong, false, true, "password", 0},
	{"userpw", 3, classStrong, true, true, "password", 0},
	{"adminpw", 4, classStrong, true, true, "password", 0},
	{"storepw", 4, classStrong, true, true, "password", 0},
	{"dbpw", 0, classStrong, true, true, "password", 0},
	{"_pw", 0, classStrong, true, true, "password", 0},
	{"_session", 0, classWeak, true, false, "cookie", 0},
	{"-session", 0, classWeak, true, false, "cookie", 0},
	{"_signing", 2, classKey, true, false, "secret-key", 0},
	{"userlist", 4, classWeak, false, true, "password", 0}, // of PgBouncer
	{"cookies", 3, classWeak, true, false, "cookie", 0},
	{"jsessionid", 0, classWeak, false, false, "cookie", 0},
	{"phpsessid", 2, classWeak, false, false, "cookie", 0},
	{"sessionid", 6, classWeak, false, false, "cookie", 0},
	{"connect.sid", 7, classWeak, false, false, "cookie", 0},
	{"pwd", 0, classStrong, true, true, "password", atEnd},
	{"psk", 0, classStrong, false, true, "password", 0},
	{"secret", 1, classStrong, true, false, "secret", anywhere}, // ecr
	{"secrets", 1, classStrong, true, false, "secret", 0},
	{"secretid", 1, classWeak, true, false, "secret", 0},
	{"secret_id", 1, classWeak, true, false, "secret", 0},
	{"secret id", 1, classWeak, false, false, "secret", 0},
	{"identified", 2, classStrong, false, true, "identified", 0}, // enti: SQL
	{"privkey", 2, classStrong, true, false, "secret-key", 0},
	{"add-mask", 2, classStrong, false, false, "secret", 0}, // of workflows
	{"key", 0, classKey, false, false, "key", atEnd},
	{"keys", 0, classKey, false, false, "key", atEnd},
	{"ntlm", 1, classStrong, false, false, "secret", 0}, // a hash that logs in
	{"samlresponse", 4, classWeak, false, false, "token", 0},
	{"code_verifier", 5, classWeak, false, false, "token", 0},
	{"mnemonic", 1, classStrong, false, true, mnemonicRule, 0},
	{"phrase", 0, classRaw, false, true, mnemonicRule, 0},
	{"words", 2, classRaw, false, true, mnemonicRule, 0},
	{"encrypt", 2, classRaw, false, false, "secret-key", 0}, // of Consul
	{"nkey", 0, classKey, false, false, "key", 0},
	{"genkey", 0, classKey, false, false, "key", 0},
	{"token", 1, classWeak, true, false, "token", anywhere}, // oke
	{"tokens", 1, classWeak, true, false, "token", 0},
	{"auth", 1, classWeak, false, false, "auth", atEnd},                // uth
	{"authorization", 1, classHeader, true, false, "authorization", 0}, // uth
	{"login", 1, classWeak, false, false, "credential", 0},             // ogi
	{"bearer", 1, classWeak, false, false, "token", 0},                 // ear
	{"credential", 4, classWeak, true, false, "credential", anywhere},  // ent
	{"credentials", 7, classWeak, true, false, "credential", 0},        // ial
	{"cookie", 3, classWeak, true, false, "cookie", anywhere},          // kie
	{"signature", 3, classWeak, true, false, "signature", 0},           // nat
	{"sig", 0, classWeak, false, false, "sig", 0},
	{"access-sign", 7, classWeak, true, false, "signature", 0},
	{"dsn", 0, classWeak, false, false, "dsn", atEnd},
	{"pat", 0, classWeak, false, false, "pat", 0},
	{"salt", 1, classWeak, false, false, "secret", 0}, // alt
	{"pepper", 1, classWeak, false, false, "secret", 0},
	{"jwt", 0, classWeak, false, false, "token", 0},
	{"pass", 0, classWeak, true, true, "password", atEnd},
	{"totp", 0, classStrong, false, false, "secret", 0},
	{"device_code", 5, classWeak, false, false, "token", 0},
	{"code", 0, classQuery, false, false, "query-code", 0},
	{"codes", 0, classQuery, false, false, codesRule, 0},
	{"authentication_string", 13, classStrong, false, true, "password", 0},
	{" pw", 0, classStrong, true, true, "password", 0}, // in a sentence
	{"'pw", 0, classStrong, true, true, "password", 0}, // of a record
	{"\"pw", 0, classStrong, true, true, "password", 0},
	{"&pw", 0, classStrong, true, true, "password", 0},
	{"\npw", 0, classStrong, true, true, "password", 0},
	{"pin", 0, classPin, false, true, pinRule, 0},
	{"otp", 0, classPin, false, true, pinRule, 0},
	{"pincode", 0, classPin, false, true, pinRule, 0},
	{"code d'accès", 5, classPin, false, true, pinRule, 0},
	{"código de verificación", 15, classPin, false, true, pinRule, 0},
	{"bestätigungscode", 11, classPin, false, true, pinRule, 0},
	{"zugangscode", 0, classPin, false, true, pinRule, 0},
	{"puk", 0, classPin, false, true, pinRule, 0},
	{"jeton", 0, classWeak, false, false, "token", 0}, // token, in other languages
	{"окен", 0, classWeak, true, false, "token", 0},
	{"トークン", 0, classWeak, true, false, "token", 0},
	{"令牌", 0, classWeak, true, false, "token", 0},
	{"토큰", 0, classWeak, true, false, "token", 0},
	{"clé api", 0, classStrong, false, false, "api-key", 0},
	{"clave api", 2, classStrong, false, false, "api-key", 0},
	{"schlüssel", 0, classKey, true, false, "key", 0},
	{"sleutel", 1, classKey, true, false, "key", 0}, // key, in Dutch, Swedish and Norwegian
	{"nyckel", 1, classKey, true, false, "key", 0},
	{"nøkkel", 1, classKey, true, false, "key", 0},
	{"clé d'api", 4, classStrong, false, false, "api-key", 0},
	{"clé d’api", 0, classStrong, false, false, "api-key", 0},
	{"chiave api", 4, classStrong, false, false, "api-key", 0},
	{"clave de api", 7, classStrong, false, false, "api-key", 0},
	{"chave de api", 7, classStrong, false, false, "api-key", 0},
	{"chave api", 3, classStrong, false, false, "api-key", 0},
	{"klucz api", 2, classStrong, false, false, "api-key", 0},
	{"люч api", 0, classStrong, true, false, "api-key", 0},
	{"apiキー", 1, classStrong, false, false, "api-key", 0},
	{"notfallcodes", 2, classCodes, true, true, codesRule, 0},
	{"wiederherstellungscodes", 16, classCodes, true, true, codesRule, 0},
	{"codes de secours", 5, classCodes, false, true, codesRule, 0},
	{"códigos de recuperación", 16, classCodes, false, true, codesRule, 0},
	{"codici di backup", 4, classCodes, false, true, codesRule, 0},
	{"pwgen", 0, classStrong, false, true, "password", 0}, // what these print
	{"openssl rand", 4, classStrong, false, false, "secret", 0},
	{"urandom", 1, classStrong, false, false, "secret", 0},
	{"mk dump", 1, classStrong, false, false, "secret-key", 0}, // of LUKS
	{"setsteamaccount", 4, classStrong, true, false, "secret", 0},
	{"seed", 0, classRaw, false, false, "secret-key", 0},
	{"- begin license", 2, classCodes, true, true, codesRule, 0},
	{"license", 2, classGroups, false, true, groupsRule, 0},
	{"licence", 3, classGroups, false, true, groupsRule, 0},
	{"serial", 3, classGroups, false, true, groupsRule, 0},
	{"serial number", 7, classGroups, false, true, groupsRule, 0},
}

// keywordRef is the ref of an index entry for a keyword of ours; those of a policy's names are
// not negative.
func keywordRef(k int) int32 { return int32(-1 - k) }

// qualifiers are the words before a keyword that change what it says.
var qualifiers = [...]struct {
	word   string // of keywords
	before string // words, in any writing
	class  class
	rule   string
}{
	{"key", "primary secondary", classRaw, "secret-key"},
	{"key", "wifi wlan wireless wpa wpa2 wpa3 wep", classStrong, digitsRule},
	{"key", "paper", classCodes, codesRule},
	{"salt", "nonce auth in", classStrong, "secret"}, // of WordPress
	{"key", "pre-shared preshared pre_shared isakmp tacacs-server radius-server network", classStrong, "password"},
	{"password", "one-time one_time onetime time", classStrong, digitsRule},
	{"lösenord", "ngs", classStrong, digitsRule}, // engångs
	{"wachtwoord", "eenmalig", classStrong, digitsRule},
	{"passwordsalt", "sha1 sha256 sha512 md5", classNone, ""}, // of one hash
	{"salt", "password", classNone, ""},
	{"community", "snmp-server snmp", classStrong, "password"},
	{"key", "user.signing public pub foreign cache sort partition row idempotency dedup dedupe deduplication publishable site object s3 index unique " +
		"kms hash range group route shard message event feature translation config registry host hot map lookup order column field item " +
		"record resource restore query composite natural surrogate checksum digest fingerprint lock arrow enter shift ctrl any " +
		"pivot join search sorting compound vapid measurement anon instrumentation i18n locale label metadata parameter parent trace mon tur don websocket gpg pusher pusher_app reverb_app",
		classNone, ""},
	{"key", "api app application", classStrong, "api-key"},
	{"key", "certificate tls ssl aes hmac cipher symmetric wrapping private secret access account shared signing encryption master storage preshared license licence security deploy service admin unseal " +
		"recovery client consumer setup activation product subscription registration enrollment join pairing stream ingestion system function functions session decryption validation management auth role write read ingest server machine", classStrong, "secret-key"},
	{"secret", "checksum hash hashed digest", classNone, ""},
	{"token", "access auth refresh session api", classStrong, "token"},
	{"token", "pad eos bos unk mask stop prompt completion total input output max cls sep next page continuation num sync delta cursor pagination " +
		"scroll resume starting marker special max_new num_new shift cached reasoning per end start publickey public_key",
		classNone, ""},
	{"pass", "com tres by sur over under en encom im tres bi", classNone, ""},
	{"auth", "master", classStrong, "password"},
	{"auth", "o", classWeak, "auth"},
	{"sig", "key cert", classNone, ""},
	{"cookie", "set", classSetCookie, "cookie"},
	{"code", "recovery backup scratch rescue emergency", classCodes, codesRule},
	{"seed", "otp totp hotp 2fa mfa wallet", classStrong, "secret-key"},
	{"code", "pin puk otp tan one-time onetime verification verify sms security login sign-in signin door gate alarm setup unlock confirmation authentication pairing 2fa mfa " +
		"auth access activation invite invitation signup sign-up registration join redeem claim this your je uw votre ton ihr dein su tu seu", classPin, pinRule},
	{"credential", "amz", classNone, ""}, // the id of a key and its scope
}

// endSet has a bit for the last two letters of each word of a list. Most words end otherwise than
// all of them, and then the list is not read.
type endSet [32]uint32

func (s *endSet) add(word string) {
	last := word[len(word)-1] & 31
	if len(word) == 1 {
		s[last] = ^uint32(0)
		return
	}
	s[last] |= 1 << (word[len(word)-2] & 31)
}

func (s *endSet) has(text []byte) bool {
	before := byte(0)
	if len(text) > 1 {
		before = text[len(text)-2]
	}
	return s[text[len(text)-1]&31]>>(before&31)&1 != 0
}

// qualifiersOf is what is derived from the tables of names.
type qualifiersOf struct {
	ends [len(qualifiers)]endSet // by row of qualifiers
	rows [len(keywords)][]uint8  // of qualifiers, by row of keywords
	// others are the ends of otherNames, and none of the words that with another before them are no secret
	others, none endSet
}

var qualified = sync.OnceValue(func() *qualifiersOf {
	out := new(qualifiersOf)
	for word := range strings.SplitSeq(otherNames, " ") {
		out.others.add(word)
	}
	for k := range qualifiers {
		if qualifiers[k].class == classNone {
			out.none.add(qualifiers[k].word)
		}
		for word := range strings.SplitSeq(qualifiers[k].before, " ") {
			out.ends[k].add(word)
		}
		one := qualifiers[k].word
		many := one + "s"
		for i := range keywords {
			if w := keywords[i].word; w == one || w == many {
				out.rows[i] = append(out.rows[i], uint8(k))
			}
		}
	}
	return out
})

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
	shape int32 // 1 + the row of vendorNames
	bare  bool  // it is a vendor's word and nothing else
	outcome
}

func isIdent(c byte) bool { return sets[setPath].has(c) }

// maxName bounds the look to the left.
const maxName = 64

// readName judges whether the word at ks ends a name that says secret, or belongs to a
// vendor.
func (e *engine) readName(ks int, ent *entry, eof bool) nameInfo {
	v, kw := e.view.vis, ent.text
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
	if !isAlnum(kw[0]) && kw[0] < 0x80 && kw[1] == 'p' {
		ks, kw = ks+1, kw[1:]
	}
	end, base, o := nameEnd(v, ks, kw, ent.kind == eVendor, eof)
	longer := false
	if o == no && ent.kind == eName && ent.ref < 0 && keywords[-1-ent.ref].variable == anywhere {
		end, o = variableEnd(v, ks, ks+len(kw), eof)
		longer = true
	}
	if o != found {
		return nameInfo{outcome: o}
	}
	start := ks
	for start > e.nameEdge && ks-start < maxName && isIdent(v[start-1]) {
		start--
	}
	start = unescapedStart(v, start, ks)
	if start < ks && v[start] == '-' && v[start+1] != '-' && (start == 0 || v[start-1] == '\n') {
		start++ // a line that a diff takes away
	}
	if bytes.HasSuffix(v[:start], []byte(placeholderHead)) || start > 0 && v[start-1] == '<' && v[start] == '/' {
		return nameInfo{} // the rule in a placeholder of ours; the end of an element: <key>PayloadUUID</key>
	}
	if start > 1 && v[start-1] == ':' && v[start-2] == ':' && isUpper(v[start]) {
		return nameInfo{} // a type, such as AWS::IAM::AccessKey
	}
	if start > 1 && v[start-1] == ':' && end < len(v) && v[end] == ':' && v[start-2] != ':' {
		if end+1 == len(v) && !eof {
			return nameInfo{outcome: more}
		}
		if end+1 < len(v) && v[end+1] > ' ' {
			return nameInfo{} // a part of arn:…:secret:name, of a task of Gradle
		}
	}
	if bytes.HasPrefix(v[start:], []byte("//")) && start > 0 && v[start-1] == ':' && bytes.IndexByte(v[start+2:end], '/') < 0 {
		return nameInfo{} // the user of a URL
	}
	info := nameInfo{start: start, end: end, outcome: found}
	switch {
	case ent.kind == eVendor:
		if !vendorSays(v[ks:end], kw) {
			return nameInfo{}
		}
		row := &e.snap.vendors[ent.ref]
		if ks > start && isLower(v[ks]) && isAlnum(v[ks-1]) || isUpper(v[ks]) && ks > start && isUpper(v[ks-1]) {
			return nameInfo{} // inside another word
		}
		info.class, info.rule, info.shape = classShape, e.snap.rules[row.rule].id, ent.ref+1
		info.bare = end-start == len(kw)
	case ent.ref >= 0:
		if globFold(e.set.cfg.Names[ent.ref], string(v[start:end])) {
			info.class, info.rule = classExtra, "policy-name"
		}
	default:
		if e.named == nil && e.snap != nil {
			e.named = new(nameMemo)
		}
		slot, same := e.named.slot(v, start, ks, end, ent.ref, base)
		if same {
			info.class, info.rule, info.noTag, info.shape = slot.class, slot.rule, slot.noTag, slot.shape
			break
		}
		info.class, info.rule, info.noTag = classify(v, start, ks, end, int(-1-ent.ref), base)
		if e.snap != nil && (info.class != classNone || ks > start || start > 1 && v[start-1] == ' ') {
			from := start
			for k := 0; from > 1 && v[from-1] == ' ' && isIdent(v[from-2]) && start-from < maxName && k < 2; k++ {
				for from--; from > 0 && isIdent(v[from-1]) && start-from < maxName; from-- {
				}
			}
			if info.shape = vendorMarks().vendorAt(v[from:end]); info.shape > 0 && info.class == classNone {
				info.class, info.rule = classShape, "vendor"
			}
		}
		if slot != nil {
			slot.set(v, start, ks, end, ent.ref, base)
			slot.class, slot.rule, slot.noTag, slot.shape = info.class, info.rule, info.noTag, info.shape
		}
	}
	if end < len(v) && v[end] == ')' && start > 1 && v[start-1] == '(' && isAlnum(v[start-2]) { // set config(password) "value"
		if end+2 >= len(v) && !eof {
			return nameInfo{outcome: more}
		}
		if end+2 < len(v) && v[end+1] == ' ' && (v[end+2] == '"' || v[end+2] == '{') {
			info.end++
		}
	}
	if info.class == classNone && kw == "token" && start < ks && signBehind(v, end) && isUpper(v[ks]) && bytes.IndexFunc(v[start:end], func(r rune) bool { return isLower(byte(r)) }) < 0 {
		info.class, info.rule = classWeak, "token" // of a variable, whatever its first words
	}
	if longer && info.class != classNone {
		info.class, info.shape = classKey, 0
	}
	if info.class == classNone {
		return nameInfo{}
	}
	return info
}

// nameMemo remembers what names say: a text repeats few of them.
type nameMemo struct{ slots [64]nameSlot }

type nameSlot struct {
	name   [maxName]byte
	n, at  uint8 // the length of the name, and where its last word begins
	before byte
	signed bool // a quote, a blank or a sign stands behind it
	ref    int32
	base   string
	// what was found out
	class class
	noTag bool
	rule  string
	shape int32
}

// slot returns where a name has its place and whether it is the one that is there. Behind a space
// the words before count, and there is no place.
func (m *nameMemo) slot(v []byte, start, ks, end int, ref int32, base string) (s *nameSlot, same bool) {
	n := end - start
	if m == nil || n > maxName || start > 0 && v[start-1] == ' ' || n == len("key") { // whose parent counts
		return nil, false
	}
	s = &m.slots[(n+int(ref)*5+int(v[start]))&(len(m.slots)-1)]
	return s, int(s.n) == n && s.ref == ref && int(s.at) == ks-start && s.before == v[max(start-1, 0)] && s.signed == signBehind(v, end) && s.base == base && bytes.Equal(s.name[:n], v[start:end])
}

func (s *nameSlot) set(v []byte, start, ks, end int, ref int32, base string) {
	copy(s.name[:], v[start:end])
	s.n, s.at, s.before, s.signed, s.ref, s.base = uint8(end-start), uint8(ks-start), v[max(start-1, 0)], signBehind(v, end), ref, base
}

// signBehind reports whether what stands behind a name makes it one without other words: key=.
func signBehind(v []byte, end int) bool {
	return end < len(v) && (v[end] == '"' || v[end] == '\'' || v[end] == ' ' || v[end] == ':' || v[end] == '=')
}

// variableEnd finds the end of the name of an environment variable that goes on behind the word
// that decides, as in API_TOKEN_PROD. What the collector takes for a secret is one in a text too.
func variableEnd(v []byte, ks, p int, eof bool) (int, outcome) {
	if p >= len(v) || v[p] != '_' && v[p] != 'S' || !isUpper(v[ks]) || ks > 0 && (isLower(v[ks-1]) || v[ks-1] == '-') {
		return 0, no
	}
	from := p
	for ; p < len(v) && p-ks < maxName && (isUpper(v[p]) || isDigit(v[p]) || v[p] == '_'); p++ {
	}
	if p == len(v) && !eof {
		return 0, more
	}
	if p < len(v) && (isIdent(v[p]) || v[p] == '(') || endsIn(v[ks:p], exempt) || endsIn(v[ks:p], notInText) {
		return 0, no
	}
	rest := bytes.ToLower(v[from:p])
	for k := range keywords {
		if bytes.Contains(rest, []byte(keywords[k].word)) {
			return 0, no // which decides
		}
	}
	return p, found
}

// vendorSays reports whether the rest of a name, from the vendor's word on, names a secret:
// nothing but the vendor, or an ending that says so.
func vendorSays(rest []byte, word string) bool {
	rest = bytes.TrimRight(rest, "0123456789")
	return len(rest) <= len(word) || endsInAny(rest, "key keys token tokens secret api auth access pat pass password pwd apikey credential "+
		"credentials private com signature dsn sdk initialize license value login")
}

// unescapedStart skips what is no part of a name: the letter of an escape, as in
// \nPASSWORD=…, and the digits of %3Fpassword.
func unescapedStart(v []byte, start, ks int) int {
	if start > 0 && start < ks && v[start-1] == '\\' && (v[start] == 'n' || v[start] == 't' || v[start] == 'r') {
		return start + 1
	}
	if start > 0 && v[start-1] == '\\' && ks-start >= 5 && (v[start] == 'u' || v[start] == 'x') {
		if n := 5; v[start] == 'u' && sets[setXDigit].has(v[start+4]) {
			return start + n
		}
	}
	if start > 0 && ks-start >= 2 && v[start-1] == '%' && isDigit(v[start]) && sets[setXDigit].has(v[start+1]) {
		return start + 2
	}
	return start
}

// nameEnd finds the end of a name whose last word is kw: digits and a few endings may
// follow. A vendor's word may stand anywhere in its name.
func nameEnd(v []byte, ks int, kw string, vendor, eof bool) (int, string, outcome) {
	end := ks + len(kw)
	if vendor {
		if end < len(v) && isLower(v[end]) && isLower(v[end-1]) {
			return 0, "", no
		}
		for end < len(v) && end-ks < maxName && (isIdent(v[end]) && v[end] != '/') {
			end++
		}
		if end == len(v) && !eof {
			return 0, "", more
		}
		for end > ks && !isAlnum(v[end-1]) {
			end--
		}
		return end, "", found
	}
	// The name may go on: key_base, a number, or another word, which decides then.
	base := ""
	if kw == "keys" && end < len(v) && v[end] == '_' && hasFold(v[end:], "_b64") {
		end += len("_b64")
	}
	if kw == "key" && end < len(v) && strings.IndexByte("_-bBdDmM", v[end]) >= 0 {
		for _, suffix := range [...]string{"_base", "-base", "base", "_data", "-data", "data", "material", "_pem", "_b64", "_base64"} {
			if hasFold(v[end:], suffix) {
				end += len(suffix)
				base = suffix
				break
			}
		}
	}
	if base == "" && !eof && kw == "key" && len(v)-end < len("_base64") && !hasBreak(v[end:]) && (end == len(v) || strings.IndexByte("_-bBdDmM", v[end]) >= 0) {
		return 0, "", more
	}
	if base == "" && end < len(v) && (v[end] == '_' || v[end] == '-' || isUpper(v[end])) {
		end = valueWordsEnd(v, end, kw)
		from := end
		if from < len(v) && (v[from] == '_' || v[from] == '-') {
			from++
		}
		if !eof && len(v)-from < len("confirmation") && !hasBreak(v[from:]) {
			return 0, "", more
		}
	}
	p := end
	if (kw == "codes" || kw == "userlist") && hasFold(v[p:], ".txt") { // the title is the name of the file
		p += len(".txt")
		return p, base, found
	}
	if p+2 < len(v) && (v[p] == '_' || v[p] == '-') && v[p+1] == 'v' && isDigit(v[p+2]) { // …_password_v4
		p += 2
	}
	if p < len(v) && (v[p] == '_' || v[p] == '-' || v[p] == '.') && p+1 < len(v) && isDigit(v[p+1]) {
		p++
	}
	for p < len(v) && p-end < 3 && isDigit(v[p]) {
		p++
	}
	if p < len(v) && isAlnum(v[p]) {
		return 0, "", no
	}
	if !eof && (p >= len(v) || (v[p] == '_' || v[p] == '-') && len(v)-p < len("_confirmation") && !hasBreak(v[p:])) {
		return 0, "", more
	}
	if p+1 < len(v) && v[p] == '.' && isAlpha(v[p+1]) { // of an object: random_password.db.result
		q := p + 1
		for q < len(v) && q-p < 40 && isIdent(v[q]) && v[q] != '/' && !(v[q] == '.' && v[q-1] == '.') {
			q++
		}
		if q == len(v) && !eof && q-p < 40 {
			return 0, "", more
		}
		if t := v[p:q]; bytes.HasSuffix(t, []byte(".result")) || bytes.HasSuffix(t, []byte(".value")) || bytes.HasSuffix(t, []byte(".plaintext")) || bytes.HasSuffix(t, []byte(".stdout")) {
			return q, base, found
		}
	}
	if p < len(v) && (v[p] == '_' || v[p] == '-' || v[p] == '/' || v[p] == '.' && p+1 < len(v) && isIdent(v[p+1]) && v[p+1] != '.') {
		return 0, "", no
	}
	if p < len(v) && v[p] == '.' && p+1 == len(v) && !eof {
		return 0, "", more
	}
	return p, base, found
}

// valueWordsEnd returns the end of the words of valueWords that follow, at most two.
func valueWordsEnd(v []byte, end int, kw string) int {
	for range 2 {
		if end == len(v) || v[end] != '_' && v[end] != '-' && !isUpper(v[end]) {
			break
		}
		from, was := end, end
		if v[end] == '_' || v[end] == '-' {
			from++
		}
		if c := fold(v[min(from, len(v)-1)]); isLower(c) {
			for _, suffix := range valueWords[c-'a'] {
				if n := from + len(suffix); hasFold(v[from:], suffix) && (n == len(v) || !isLower(v[n])) && (kw[0] == 'p' || kw == "otp" || !strings.Contains("hash confirmation repeat again attempt", suffix)) && (v[end] != '-' || (suffix == "value" || suffix == "string") && (kw[0] == 'p' || kw[0] == 's') || isOneOf([]byte(suffix), environments[:])) {
					end = n
					break
				}
			}
		}
		if end == was {
			break
		}
	}
	return end
}

// environments say where a secret is used: api-key-prod.
var environments = [...]string{"prod", "production", "staging", "test", "live", "old", "new"}

// valueWords may follow the word that decides, by their first letter: DB_PASSWORD_VALUE,
// secretString, password_hash, API_KEY_PROD.
var valueWords = [26][]string{
	0: {"again", "attempt", "applications"}, 'c' - 'a': {"confirmation", "confirm", "clients"}, 'd' - 'a': {"data", "dev"}, 'h' - 'a': {"hash", "hex"}, 'l' - 'a': {"live"}, 'm' - 'a': {"md5"}, 'n' - 'a': {"new"}, 'o' - 'a': {"old"},
	'p' - 'a': {"production", "prod", "plain"}, 'r' - 'a': {"repeat"}, 's' - 'a': {"string", "str", "sha256", "sha512", "staging"}, 't' - 'a': {"text", "test"}, 'v' - 'a': {"value"},
}

// hasBreak reports whether the name that goes on in b ends in it.
func hasBreak(b []byte) bool { return !allOf(b, &sets[setPath]) }

// classify decides by the last words of a name.
func classify(v []byte, start, ks, end, keyword int, base string) (class, string, bool) {
	row := &keywords[keyword]
	kw := row.word
	left := v[start:ks]
	prev := left
	if len(left) == 0 && start > 1 && v[start-1] == ' ' { // words of a sentence or a title: API key
		from := start - 1
		for from > 0 && start-from < 24 && isIdent(v[from-1]) {
			from--
		}
		prev = v[from : start-1]
	}
	for len(prev) > 0 && !isAlnum(prev[len(prev)-1]) {
		prev = prev[:len(prev)-1]
	}
	apart := len(left) == 0 || !isAlnum(left[len(left)-1]) || // a word of its own
		isUpper(v[ks]) && (isLower(left[len(left)-1]) || ks+1 < len(v) && isLower(v[ks+1])) || isDigit(left[len(left)-1])
	whole := v[start:end]
	if base != "" {
		return classStrong, "secret-key", false
	}
	out, rule := row.class, row.rule
	known := qualified()
	for _, k := range known.rows[keyword] {
		q := &qualifiers[k]
		if len(prev) == 0 || !known.ends[k].has(prev) || !endsInAny(prev, q.before) {
			continue
		}
		if q.class == classNone && !apart && q.word == "token" {
			continue
		}
		if q.class != classNone && isHeaderKey(whole, kw) {
			break
		}
		return q.class, q.rule, q.rule == "password" || q.rule == digitsRule
	}
	if isHeaderKey(whole, kw) {
		return classStrong, "header-key", false
	}
	inQuery := start > 0 && (v[start-1] == '?' || v[start-1] == '&')
	switch kw {
	case "key", "keys":
		switch {
		case len(left) == 0 && endsInAny(parentOf(v, start), "crypt encryption encrypt signing hmac jwt secret session csrf cookie cipher aes api linkkey resolvingkey termkey signaturekey privatekey secretkey"):
			return classStrong, "secret-key", false
		case inQuery && start == ks:
			return classQuery, "query-key", false
		case len(left) == 0 && signBehind(v, end) && start > 8 && isWireless(v[max(0, start-maxName):start]):
			return classStrong, digitsRule, true
		case len(left) == 0 && isDigit(v[end-1]): // key1, of two
			return classKey, rule, false
		case len(left) == 0 && signBehind(v, end):
			return classRaw, "secret-key", false
		case !apart || len(left) == 0 || containsFold(left, "public"):
			return classNone, "", false
		}
	case "code", "codes":
		if len(left) == 0 && inQuery {
			return classQuery, rule, false
		}
		return classNone, "", false
	case "passwd":
		if bytes.HasSuffix(whole, []byte("etc/passwd")) {
			return classNone, "", false
		}
	case "pwd":
		if string(whole) == "OLDPWD" {
			return classNone, "", false
		}
		if string(whole) == "PWD" && (start == 0 || v[start-1] != ';' && !hasFoldSuffix(v[:start], "%3b")) { // UID=a;PWD=b in ODBC
			return classWeak, rule, true // or the working directory
		}
	case "pass":
		if !apart && inWordList(v[max(start, ks-8):end]) {
			return classNone, "", false
		}
	case "cookie":
		if len(left) == 0 || string(left) == "document." {
			return classCookie, rule, false
		}
	case "secretid", "secret_id", "secret id":
		if len(left) > 0 && !apart {
			return classNone, "", false
		}
	case "salt", "psk", "totp":
		if len(left) == 0 && kw == "salt" {
			return classNone, "", false
		}
	}
	if !row.glued && !apart {
		return classNone, "", false
	}
	return out, rule, row.noTag
}

// isWireless reports what stands before the key of a wireless network.
func isWireless(left []byte) bool {
	left = left[bytes.LastIndexByte(left, '\n')+1:]
	return containsFold(left, "ssid") || containsFold(left, "wireless.") || containsFold(left, "wifi")
}

// parentOf returns the name of the object, list or section that begins in front of the name at i: 'crypt' => ['key' => …].
func parentOf(v []byte, i int) []byte {
	left := bytes.TrimRight(v[max(0, i-maxName):i], "\"' \t\r\n")
	if k := bytes.LastIndexByte(left, '['); k >= 0 && left[len(left)-1] == ']' && (k == 0 || left[k-1] == '\n') && i > 0 && v[i-1] == '\n' {
		return left[k+1 : len(left)-1]
	}
	if len(left) == 0 || strings.IndexByte("[{(:", left[len(left)-1]) < 0 {
		return nil
	}
	left = bytes.TrimRight(left, "[{(:=>\"' ")
	k := len(left)
	for k > 0 && isIdent(left[k-1]) {
		k--
	}
	return left[k:]
}

// isHeaderKey reports X-…-Key and its like.
func isHeaderKey(name []byte, kw string) bool {
	if len(name) <= len(kw) || name[0]|0x20 != 'x' || name[1] != '-' {
		return false
	}
	kw = strings.TrimSuffix(kw, "s")
	return kw == "key" || kw == "token" || kw == "secret"
}

// endsInAny reports whether text ends with one of the words, whatever joins them. Short
// words must stand by themselves.
func endsInAny(text []byte, words string) bool {
	for len(words) > 0 {
		n := strings.IndexByte(words, ' ')
		if n < 0 {
			n = len(words)
		}
		w := words[:n]
		words = words[min(n+1, len(words)):]
		if len(text) < n || fold(text[len(text)-1]) != w[n-1] || !hasFoldSuffix(text, w) {
			continue
		}
		k := len(text) - len(w)
		if k == 0 || len(w) > 4 || !isAlpha(text[k-1]) || isUpper(text[k]) && isLower(text[k-1]) {
			return true
		}
		if w == "api" || w == "app" || w == "pub" || w == "o" || w == "auth" {
			return true
		}
	}
	return false
}

// nameKind is what the name of a variable says about its value.
type nameKind uint8

const (
	nameOther nameKind = iota
	nameSecret
	nameURL
	nameExempt // a path, an id or a limit of a secret
)

// addresses end the names of variables that hold a URL, exempt those that hold what belongs to
// a secret and is none.
const (
	addresses = "_url _uri _proxy"
	exempt    = "_file _path _dir _id _name _sock _ttl _public_key max_tokens"
	// notInText do so in a text, where no user chose what is a secret.
	notInText = "_url _uri _host _hash _sha _sha1 _sha256 _sha512 _digest _checksum _fingerprint _thumbprint _version _arn _type _count _length _size _kind _issuer _created _expires _ref _class"
)

// CredentialName reports whether the name of a variable says that its value is a
// secret. A path, an id or a limit of a secret is none.
func CredentialName(name string) bool { return secretNameKind(name) == nameSecret }

// secretNameKind classifies the name of an environment variable, in any case.
func secretNameKind(name string) nameKind {
	n := []byte(name[:min(len(name), maxName)])
	if hasFoldSuffix(n, "_b64") {
		n = n[:len(n)-len("_b64")]
	}
	for k := range keywords {
		kw := &keywords[k]
		if kw.variable == 0 {
			continue
		}
		for at := 0; at+len(kw.word) <= len(n); at++ {
			if !hasFold(n[at:], kw.word) {
				continue
			}
			if end := at + len(kw.word); kw.variable == atEnd && (end < len(n) || at == 0 || n[at-1] != '_' && !hasFoldSuffix(n[:at], "api")) {
				continue
			}
			if endsIn(n, exempt) || bytes.Contains(bytes.ToUpper(n), []byte("MAX_TOKENS")) {
				return nameExempt
			}
			return nameSecret
		}
	}
	if endsIn(n, addresses) {
		return nameURL
	}
	return nameOther
}

// endsIn reports whether a name ends with one of the words.
func endsIn(name []byte, words string) bool {
	for w := range strings.SplitSeq(words, " ") {
		if hasFoldSuffix(name, w) {
			return true
		}
	}
	return false
}
