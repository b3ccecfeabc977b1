package filter

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// gate is what is known about the place a value stands in.
type gate struct {
	class  class
	doubt  doubt
	rule   string
	quoted bool // between quotes
	opened bool // behind one
	scheme bool
	// secrets crowd here
	crowded bool
}

// classURL is the class of passwords in URLs.
const classURL = classExtra + 1

// maxJudged is how much of a value its judgement looks at. Names side by side
// would otherwise cost the length of a line each.
const maxJudged = 512

// passes reports whether a value is a secret rather than a reference to one, a
// placeholder or a word.
func (s *Set) passes(val []byte, g gate) bool {
	if len(val) > maxJudged {
		val = val[:maxJudged]
	}
	if g.rule == mnemonicRule {
		return isMnemonic(val)
	}
	digits, upper, lower := tally(val)
	plain := digits+upper+lower == len(val) // most of what is asked below looks for marks
	switch g.class {
	case classPin:
		return isPin(val) && (g.doubt != lone || len(val) >= 6)
	case classGroups:
		return isKeyGroups(val)
	}
	if len(val) < 6 || !plain && (bytes.Contains(val, []byte(placeholderHead)) ||
		bytes.HasPrefix(val, []byte(placeholderHead[1:]))) {
		return false
	}
	if g.class == classCodes {
		return isRecoveryCode(val)
	}
	if g.rule == "cookie" && upper == 20 && len(val) == 20 && unlikely(val) {
		return true // of Erlang
	}
	if (g.rule == digitsRule || g.rule == "passphrase" && len(val) >= 8) && digits == len(val) && g.doubt <= literal {
		return len(val) <= 63 && !isFiller(val) && !isAscending(val)
	}
	chosen := g.rule == "password" || g.rule == "passphrase" || g.rule == digitsRule // by people
	// Letters of one case that read like no word pass behind a name that says secret.
	odd := digits+upper == 0 && (plain && len(val) >= 8 || len(val) >= 24) && (g.class == classStrong || chosen)
	if odd { // a secret may be called by a short name that is no word
		least := 11
		if chosen || len(val) >= 24 {
			least = 10
		}
		odd = unlikelier(val, least) && !readable(val) && !compound(val)
	}
	if !plain && ((len(val) >= minCodeGroups && g.class == classStrong || chosen && lower >= 12 && lower > len(val)-4) && isCodeGroups(val) || chosen && g.quoted && (isSpacedGroups(val) || isOddPhrase(val))) {
		return true
	}
	opaque := odd && (g.doubt == likely || g.doubt == literal || g.doubt == unsure && g.quoted)
	if g.doubt != certain && digits == 0 && (upper == 0 || lower == 0) && !opaque && g.rule != "passphrase" {
		return false // no value with less passes in doubt
	}
	if g.rule == "dsn" && bytes.IndexByte(val, '=') > 0 {
		return hasPassword(val) && !isExample(val)
	}
	if !plain && (isKeyGroups(val) || chosen && (g.doubt <= literal || g.rule == "passphrase") && (isPassphrase(val, g.rule == "passphrase") || g.rule == "passphrase" && isNumberedPhrase(val))) {
		return true
	}
	if chosen && g.doubt != certain && containsFold(val, "password") {
		return false // about passwords
	}
	if plain && g.crowded && digits > 0 && digits < len(val) && g.doubt <= likely && !isNumeric(val) {
		switch g.class {
		case classKey:
			return len(val) >= 16 && digits >= 2
		case classWeak:
			return len(val) >= 12 || len(val) >= 8 && chosen
		case classStrong, classHeader, classCookie, classSetCookie, classExtra:
			return len(val) >= 8
		}
	}
	if plain && isFiller(val) || !plain && isReference(val) || isPattern(val) || isConstant(val) || isExample(val) || isNumeric(val) || !plain && isPathOrHost(val) {
		return false
	}
	for _, c := range val {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false // binary
		}
	}
	if !plain && isUUID(val) {
		if g.doubt == random || g.doubt == piped && g.opened {
			return false
		}
		switch g.class {
		case classStrong, classHeader, classCookie, classSetCookie, classKey, classExtra, classURL:
			return true
		case classWeak:
			return g.rule == "token" || g.rule == "credential" || g.rule == "secret" || g.rule == "password" && g.quoted
		}
		return false
	}
	if !plain && isDigest(val) || isPublicKey(val) {
		return false
	}
	if g.opened && (val[0] == ' ' || val[0] == ',' || val[0] == ')' || val[0] == ';' || val[0] == '}') {
		return false // the quote closed a string that ends with the name
	}
	words := wordy(val) || !plain && otherWords(val) || digits == 0 && len(val) < 16 && sameCase(val) && letters(val) && !odd
	if !plain && bytes.IndexByte(val, ' ') >= 0 {
		if (g.class == classStrong || g.class == classKey || g.class == classRaw || chosen) && isSpacedGroups(val) {
			return true
		}
		if words || onlyWords(val) {
			return false
		}
	}
	if !plain && (g.doubt != certain && isVersion(val) || g.class == classWeak && isArtifact(val)) {
		return false
	}
	if !chosen && !g.quoted && len(val) <= 12 && isHex(val) && lower > 0 {
		return false // an abbreviated digest: secrets: 3bab239c add a key
	}
	if g.doubt != certain && isObject(val) || !plain && isIdentity(val) {
		return false
	}
	switch g.doubt {
	case likely, literal:
		if !opaque && !likelySecret(val, chosen) || !g.quoted && isCode(val) && !(chosen && numbered(val)) {
			return false
		}
	case random:
		digits, upper, lower := tally(val)
		if len(val) < minNear && chosen {
			if digits < 2 || upper == 0 || lower == 0 || digits+upper+lower < len(val)-2 || bytes.IndexByte(val, ' ') >= 0 || !likelySecret(val, false) || isCode(val) || isAddress64(val) {
				return false
			}
			break
		}
		if digits < 2 || upper < 2 || lower < 2 || digits+upper+lower < len(val)-max(4, len(val)/10) && !g.quoted || len(val) < minNear || entropy(val) < 3.6 || readable(val) || isAddress64(val) {
			return false
		}
	case piped:
		digits, upper, lower := tally(val)
		if !chosenLike(val) || isCode(val) || digits < 2 || len(val) > 64 || bytes.ContainsAny(val, "/,") || !(upper > 0 && lower > 0) && !bytes.ContainsAny(val, "!#?*%&^~") {
			return false
		}
	case lone, said:
		digits, upper, lower := tally(val)
		if chosen && plain && (g.doubt == said && isShuffled(val) || len(val) >= 10 && upper > 1 && lower > 1 && unlikely(val) && !readable(val)) || chosen && (numbered(val) && !wordy(val) || digits > 0 && upper > 1 && lower > 1 && unlikely(val) && !readable(val)) || marked(val) || chosen && digits >= 3 && plain && (upper > 0 && lower > 0 && !wordy(val) || isOddNumbered(val)) || isSeed(val) {
			break
		}
		if digits < 2 && !(plain && len(val) >= 20 && upper > 3 && lower > 3) || readable(val) || isAddress64(val) || !likelySecret(val, chosen) || isCode(val) || !(upper > 0 && lower > 0) && !isHex(bytes.TrimPrefix(val, []byte("0x"))) && !inHexGroups(val) && !(plain && len(val) >= 24 && digits >= 4) && !bytes.ContainsAny(val, "!#?*%&^~") {
			return false
		}
	case unsure, onlyLine:
		if len(val) < 10 && !chosen || bytes.IndexByte(val, ' ') >= 0 || !likelySecret(val, chosen) || !g.quoted && isCode(val) && !(chosen && numbered(val)) || !chosen && !unlikely(val) && !(isHex(val) && len(val) >= 32) {
			return false
		}
	}
	switch g.class {
	case classURL:
		return !placeholderWord(val)
	case classHeader, classCookie, classSetCookie:
		return len(val) >= 8 && !isVisitor(val) && !words && mixed(val) && (g.quoted || !isCode(val)) && (plain || len(val) >= 16 || chosenMark(val) || !readable(val))
	case classQuery:
		if len(val) < 16 { // a code of one use
			return g.rule == "query-code" && len(val) >= 10 && plain && upper > 1 && lower > 1 && unlikely(val) && !readable(val)
		}
		return unlikely(val) && !bytes.ContainsAny(val, "+(){}") && !bytes.Contains(val, []byte("%0A")) &&
			!bytes.Contains(val, []byte("%20"))
	case classRaw:
		return isRawKey(val)
	case classKey:
		digits, upper, lower := tally(val)
		if chosen && len(val) < 24 && marked(val) {
			return true
		}
		return len(val) >= 16 && (digits >= 2 || len(val) >= 20 && upper > 3 && lower > 3) && !words && likelySecret(val, false) && !bytes.ContainsAny(val, "(){}[]<>;, :") && (g.quoted || !isCode(val))
	case classWeak:
		if len(val) < 24 && marked(val) {
			return true
		}
		if len(val) < 12 && !chosen || len(val) < 8 || words || !g.quoted && (isCode(val) && !(chosen && numbered(val)) || bytes.ContainsAny(val, "(){}[]<>;,")) {
			return false
		}
		digits, upper, lower := tally(val)
		if chosen {
			return odd || chosenLike(val) || g.quoted && isOddNumbered(val) && unlikely(val) || plain && (len(val) >= 12 && upper >= 3 && lower >= 3 || len(val) >= 10 && upper >= 2 && lower >= 2 && g.doubt == certain) && unlikely(val) && !readable(val)
		}
		return entropy(val) >= 3.0 && (digits >= 2 || upper > 0 && lower > 0 || g.rule == "cookie" && plain && len(val) >= 20 && unlikely(val)) && !readable(val)
	}
	if len(val) < 8 || words || !g.quoted && isCode(val) && !(chosen && numbered(val)) {
		return false
	}
	if !chosen && readable(val) && !marked(val) && !(g.doubt == certain && numbered(val) && oddParts(val)) && !(plain && g.quoted && g.doubt == certain && len(val) >= 12 && digits >= 2 && upper > 0 && lower > 0 && !hasWord(val)) {
		return false
	}
	return mixed(val)
}

// isAddress64 reports who logs in by mail: an address in base64.
func isAddress64(val []byte) bool {
	var text [maxJudged]byte
	n, err := base64.StdEncoding.Decode(text[:], val)
	user, host, mail := bytes.Cut(text[:n], []byte("@"))
	return err == nil && mail && isUser(user) && looksLikeHost(host)
}

// isVisitor reports what analytics count visitors by: a short word, and numbers behind dots.
func isVisitor(val []byte) bool {
	digits, _, _ := tally(val)
	return bytes.Count(val, []byte(".")) >= 2 && digits+bytes.Count(val, []byte(".")) >= len(val)-2
}

// mnemonicRule finds the words that stand for the key of a wallet.
const mnemonicRule = "mnemonic"

// isMnemonic reports 12 to 24 short words.
func isMnemonic(val []byte) bool {
	words := bytes.Split(val, []byte(" "))
	for _, w := range words {
		if _, _, lower := tally(w); lower != len(w) || lower < 3 || lower > 8 {
			return false
		}
	}
	return len(words) >= 12 && len(words) <= 24 && len(words)%3 == 0
}

// isRawKey reports a key of random bytes as clouds, Ceph and Fernet write them: padded base64.
func isRawKey(val []byte) bool {
	digits, upper, lower := tally(val)
	if digits+upper+lower == len(val) {
		return len(val) >= 32 && digits >= 3 && upper >= 3 && lower >= 3 && entropy(val) >= 4.2 && !readable(val) || isSeed(val)
	}
	return len(val) >= 40 && digits > 0 && upper > 0 && lower > 0 && val[len(val)-1] == '=' && unlikely(val) &&
		(len(val) == 44 || !bytes.ContainsAny(val, "-_"))
}

// isSeed reports the key of one-time codes as authenticators want it: 10, 20 or 32 bytes in base32, and not in hexadecimal.
func isSeed(val []byte) bool {
	if len(val) != 16 && len(val) != 32 && len(val) != 52 || !allOf(val, &sets[setBase32]) {
		return false
	}
	digits, _, _ := tally(val)
	return digits >= 2 && !isHex(val) && entropy(val) >= 3
}

// objectLetters are those of which it makes them.
const objectLetters = "bcdfghjklmnpqrstvwxz2456789"

// isObject reports the name that Kubernetes gives to what a template makes: words and a few
// random letters, db-credentials-7f9c8d4b2k.
func isObject(val []byte) bool {
	k := bytes.LastIndexByte(val, '-')
	if k < 4 || len(val)-k-1 < 4 || len(val)-k-1 > 10 || !wordy(val[:k]) && !(len(bytes.Trim(val[k+1:], objectLetters)) == 0 && allOf(val[:k], &sets[setToken]) && !unlikely(val[:k])) {
		return false
	}
	digits, upper, lower := tally(val[k+1:])
	return digits > 0 && lower > 0 && upper == 0 && digits+lower == len(val)-k-1
}

// isIdentity reports what Java prints of an object: its class and a hash, java.util.Optional@1b2c3d4e.
func isIdentity(val []byte) bool {
	class, hash, ok := bytes.Cut(val, []byte("@"))
	if !ok || len(hash) == 0 || len(hash) > 8 || !isHex(hash) || bytes.IndexByte(class, '.') < 0 || !isAlpha(class[0]) {
		return false
	}
	for _, c := range class {
		if !isAlnum(c) && c != '.' && c != '$' && c != '_' {
			return false
		}
	}
	return true
}

// chosenMark reports a mark that no setting has.
func chosenMark(val []byte) bool { return bytes.ContainsAny(val, "!#?*%&^~+/=") }

// minCodeGroups is the length of the shortest of such codes.
const minCodeGroups = 29

// isCodeGroups reports a long code in groups of digits, or of small letters that are no words, such as a recovery
// key. Numbers, dates and durations are shorter.
func isCodeGroups(val []byte) bool {
	group := bytes.IndexByte(val, '-')
	if group < 4 || (len(val)+1)%(group+1) != 0 {
		return false
	}
	words := 0
	for i := 0; i < len(val); i += group + 1 {
		g := val[i : i+group]
		if digits, _, lower := tally(g); digits != group && lower != group || i+group < len(val) && val[i+group] != '-' {
			return false
		}
		if letters(g) && (inWordList(g) || !unlikely(g)) {
			words++
		}
	}
	return words*3 <= (len(val)+1)/(group+1)
}

// groupsRule finds licences, pinRule a few digits, digitsRule passwords that may be nothing but digits: those of
// wireless networks, and those that are valid once.
const (
	groupsRule = "licence"
	pinRule    = "pin"
	digitsRule = "passcode"
)

// isKeyGroups reports four to six groups of capitals and digits of one length, as licences and recovery keys are
// written.
func isKeyGroups(val []byte) bool {
	group := bytes.IndexByte(val, '-')
	if group < 4 || group > 8 || (len(val)+1)%(group+1) != 0 {
		return false
	}
	digits, upper, _ := tally(val)
	groups := (len(val) + 1) / (group + 1)
	if groups < 4 || groups > 6 || digits < 2 || upper < 2 || digits+upper != len(val)-groups+1 {
		return false
	}
	for i := group; i < len(val); i += group + 1 {
		if val[i] != '-' {
			return false
		}
	}
	return true
}

// isPin reports four to eight digits, perhaps in groups or before the mark of a keypad, or a short code of both cases.
func isPin(val []byte) bool {
	val = bytes.TrimRight(val, "#*.,")
	digits, upper, lower := tally(val)
	if digits == len(val) {
		return digits >= 4 && (digits <= 8 || digits == 11) && !isFiller(val) && !isAscending(val)
	}
	if group := bytes.IndexByte(val, '-'); group == 3 { // dates have another first one
		return len(val) <= 11 && digits == len(val)-bytes.Count(val, []byte("-")) && val[len(val)-1] != '-'
	} else if group > 3 && len(val) <= 12 { // akhxo-5671
		return letters(val[:group]) && sameCase(val[:group]) && !inWordList(val[:group]) && digits >= 4 && digits == len(val)-group-1
	}
	return len(val) >= 6 && len(val) <= 12 && digits+upper+lower == len(val) && upper > 1 && lower > 1 && unlikely(val) && !readable(val)
}

// isAscending reports 12345678 and where it begins.
func isAscending(val []byte) bool { return strings.HasPrefix("1234567890", string(val)) }

// isPassphrase reports four words or more of one case, joined by a dash or, if the name says so, a blank or a dot.
func isPassphrase(val []byte, blanks bool) bool {
	join := byte('-')
	if k := bytes.IndexAny(val, "- ."); k < 0 || val[k] != '-' && !blanks {
		return false
	} else {
		join = val[k]
	}
	words, capitals := 0, 0
	for w := range bytes.SplitSeq(val, []byte{join}) {
		if words++; words > 4 && len(w) <= 3 && allOf(w, &sets[setDigit]) {
			continue
		}
		if len(w) < 3 || len(w) > 10 || !letters(w) || !sameCase(w) || endsInAny(w, aboutSecrets) {
			return false
		}
		if isUpper(w[0]) {
			capitals++
		}
	}
	return words >= 4 && (capitals == 0 || capitals >= words-1)
}

// isOddPhrase reports three words or more of which half read like none, and a number perhaps.
func isOddPhrase(val []byte) bool {
	odd, words := 0, 0
	for w := range bytes.SplitSeq(val, []byte(" ")) {
		if words++; len(w) < 3 || len(w) > 12 || !allOf(w, &sets[setDigit]) && !(letters(w) && sameCase(w) && !inWordList(w)) {
			return false
		}
		if len(w) >= 4 && unlikely(w) {
			odd++
		}
	}
	return words >= 3 && odd*2 >= words
}

// isNumberedPhrase reports words and a number behind them: name=correct horse 42.
func isNumberedPhrase(val []byte) bool {
	k := bytes.LastIndexByte(val, ' ') + 1
	return k > 7 && len(val)-k <= 4 && allOf(val[k:], &sets[setDigit]) && letters(bytes.ReplaceAll(val[:k], []byte(" "), nil)) && !wordy(val[:k])
}

// aboutSecrets are words of a sentence or an identifier, and not of a passphrase.
const aboutSecrets = "the and for your with must not this that from has have was are you can use via key secret secrets password passphrase token name names default env file config " +
	"credential credentials user app prod service account database auth value change here"

// containsFold reports whether a word in small letters is in a text, in any case.
func containsFold(text []byte, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if fold(text[i]) == word[0] && hasFold(text[i:], word) {
			return true
		}
	}
	return false
}

// isShuffled reports letters of one case and digits in turns, which no word, date or number is.
func isShuffled(val []byte) bool {
	turns := 0
	for i := 1; i < len(val); i++ {
		if isDigit(val[i]) != isDigit(val[i-1]) {
			turns++
		}
	}
	return len(val) >= 8 && turns >= 3 && unlikely(val) && !readable(val) && !isHex(val)
}

// numbered reports a password of words that no selector is: words.joined-47.
func numbered(val []byte) bool {
	n := len(val)
	return n > 3 && isDigit(val[n-1]) && isDigit(val[n-2]) && strings.IndexByte("-_.", val[n-3]) >= 0 &&
		bytes.ContainsAny(val[:n-3], "-_.") && !bytes.ContainsAny(val, "()[]{}/:")
}

// isOddNumbered reports letters of one case that are no word, digits behind them, and perhaps more letters.
func isOddNumbered(val []byte) bool {
	k := 0
	for k < len(val) && isAlpha(val[k]) {
		k++
	}
	return k >= 5 && k < len(val) && sameCase(val[:k]) && letters(bytes.TrimLeft(val[k:], "0123456789")) && !inWordList(val[:k]) && !compound(val[:k])
}

// oddParts reports that no part of a value is a word, or short as a name of a thing has: secret=babaje.hawiso_21, and not web-tls-12.
func oddParts(val []byte) bool {
	for part := range bytes.FieldsFuncSeq(val, func(r rune) bool { return r >= 0x80 || !isAlpha(byte(r)) }) {
		if len(part) < 5 || inWordList(part) {
			return false
		}
	}
	return true
}

// marked reports a password as people make them that no code has: with a number and a mark.
func marked(val []byte) bool {
	digits, _, _ := tally(val)
	return digits >= 3 && chosenLike(val) && bytes.ContainsAny(val, "!#?*%&^~")
}

// likelySecret reports whether a value looks like a secret by itself: like no word, or, for
// a password, as people make them.
func likelySecret(val []byte, chosen bool) bool {
	if chosen && chosenLike(val) || marked(val) {
		return true
	}
	digits, upper, lower := tally(val)
	if chosen && digits >= 2 && isOddNumbered(val) {
		return true
	}
	if readable(val) || bytes.IndexByte(val, ' ') >= 0 && digits == 0 {
		return false
	}
	return unlikely(val) && (digits > 0 || upper > 0 && lower > 0) || digits >= 4 && (digits+lower == len(val) || digits+upper == len(val) || inHexGroups(val)) && entropy(val) >= 2.8
}

// inHexGroups reports groups of hexadecimal.
func inHexGroups(val []byte) bool {
	return len(val) >= minCodeGroups && isHex(bytes.ReplaceAll(val, []byte("-"), nil))
}

// chosenLike reports what people take for a password: digits, and both cases, a mark or many
// letters.
func chosenLike(val []byte) bool {
	digits, upper, lower := tally(val)
	if digits == 0 || len(val) < 8 || upper+lower < 3 || bytes.ContainsAny(val, " \t(){}[]<>;") {
		return false
	}
	return upper > 0 && lower > 0 || digits+upper+lower < len(val) || digits >= 3
}

// readable reports whether most of a text is words with numbers between them, as names of
// types, files and versions are: PKCS8EncodedKeySpec, get_token_2, us-east-1a.
func readable(val []byte) bool {
	letters, plain, digits := 0, 0, 0
	for i := 0; i < len(val); {
		c := val[i]
		if !isAlpha(c) {
			if isDigit(c) {
				digits++
			}
			i++
			continue
		}
		j := i + 1
		for j < len(val) && isAlpha(val[j]) && !(isUpper(val[j]) && (isLower(val[j-1]) || j+1 < len(val) && isLower(val[j+1]))) {
			j++ // PrivateKey, RSAKey
		}
		letters += j - i
		if w := val[i:j]; j-i >= 4 && (inWordList(w) || !unlikely(w) && sameCase(w)) || j-i == 3 && inWordList(w) {
			plain += j - i
		}
		i = j
	}
	return letters > 0 && plain*2 >= letters+digits
}

// compound reports two listed words in one: webhook.
func compound(val []byte) bool {
	for k := 3; k+3 <= len(val); k++ {
		if inWordList(val[:k]) && inWordList(val[k:]) {
			return true
		}
	}
	return false
}

// sameCase reports lower, Capital or UPPER.
func sameCase(w []byte) bool {
	_, upper, _ := tally(w)
	return upper == 0 || upper == len(w) || upper == 1 && isUpper(w[0])
}

// otherWords reports text of other languages and scripts: letters beyond ASCII, and few
// digits.
func otherWords(val []byte) bool {
	beyond, digits, letters := 0, 0, 0
	for _, c := range val {
		switch {
		case c >= 0x80:
			beyond++
		case isDigit(c):
			digits++
		case isAlpha(c):
			letters++
		}
	}
	return beyond*3 >= len(val) || beyond > 0 && digits <= 2 && letters > 0 && digits*8 <= len(val)
}

func letters(val []byte) bool {
	_, upper, lower := tally(val)
	return upper+lower == len(val)
}

func isHex(val []byte) bool { return allOf(val, &sets[setXDigit]) }

// isPublicKey reports the beginnings of public keys, certificates and of signatures by
// ECDSA, which are no secrets whatever their name, and what stands behind "Signature:" in
// each CACHEDIR.TAG (Cache Directory Tagging Specification 0.6).
func isPublicKey(val []byte) bool {
	if len(val) == 56 && (strings.IndexByte("UAONCX", val[0]) >= 0 && allOf(val, &sets[setBase32]) || val[0] == 'R' && val[1] == 'W' && allOf(val, &sets[setAny64])) {
		return true // of NATS, whose seeds begin with S; of minisign and signify
	}
	if strings.IndexByte("seAMLpa-8UVbtx", val[0]) < 0 {
		return false
	}
	if len(val) > 300 && val[0] == 'A' && val[1] == 'g' && val[2]-'A' < 4 && allOf(val, &sets[setAny64]) {
		return true // encrypted for a cluster, behind the length of its key: a SealedSecret
	}
	for _, p := range [...]string{"ssh-", "ecdsa-", "AAAAB3Nza", "AAAAC3Nza", "AAAAE2Vj", "MEUCI", "MEQCI", "MEYCI", "MFkwEwYH", "MIIBIjAN", "MIICIjAN",
		"LS0tLS1CRUdJTiBDRVJU", "LS0tLS1CRUdJTiBQVUJM", "pk_live_", "pk_test_", "pub-", "age1", "xpub", "bc1q", "bc1p", "tb1q", "tb1p", "-----BEGIN CERT", "-----BEGIN PUB",
		"VXNlcm5hbWU6", "UGFzc3dvcmQ6", // what servers of SMTP ask for
		"8a477f597d28d172789f06886806bc55"} {
		if bytes.HasPrefix(val, []byte(p)) {
			return true
		}
	}
	return false
}

// mixed reports whether a value has a digit, both cases, punctuation, or reads
// like no word.
func mixed(val []byte) bool {
	digits, upper, lower := tally(val)
	return digits > 0 || upper > 0 && lower > 0 || upper+lower < len(val) || unlikely(val)
}

// tally counts without a branch: none could be foretold in a random value.
func tally(val []byte) (digits, upper, lower int) {
	n := uint64(0)
	for _, c := range val {
		n += kinds[c]
	}
	const each = 1<<20 - 1
	return int(n & each), int(n >> 20 & each), int(n >> 40 & each)
}

// kinds has a one for each byte, in the place of what it is. Written out, it costs a start nothing.
var kinds = [256]uint64{
	'0': 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	'A': up, up, up, up, up, up, up, up, up, up, up, up, up, up, up, up, up, up, up, up, up, up, up, up, up, up,
	'a': lo, lo, lo, lo, lo, lo, lo, lo, lo, lo, lo, lo, lo, lo, lo, lo, lo, lo, lo, lo, lo, lo, lo, lo, lo, lo,
}

const up, lo = 1 << 20, 1 << 40

// below is 1 if c < n, else 0.
func below(c byte, n uint32) int { return int((uint32(c) - n) >> 31) }

// isReference reports $V ${…} $(…) %V% {{…}} <…> (…) and a masked value.
func isReference(val []byte) bool {
	switch val[0] {
	case '$':
		if k := bytes.IndexByte(val[1:min(len(val), 12)], '$'); k > 0 && len(val) > 20 {
			return false // a hash, such as $y$j9T$…
		}
		if digits, upper, lower := tally(val); len(val) >= 16 && digits >= 2 && upper >= 2 && lower >= 2 && isAlnum(val[1]) && unlikely(val[1:]) && !readable(val[1:]) {
			return false // no name of a variable is so random
		}
		return len(val) > 1 && (isAlpha(val[1]) || val[1] == '{' || val[1] == '(' || val[1] == '_' || val[1] == '$')
	case '%':
		if len(val) > 1 && strings.IndexByte("svdqwxXTpc+#%", val[1]) >= 0 {
			return true // a verb of printf
		}
		return len(val) > 1 && (val[len(val)-1] == '%' || val[1] == '(' || len(val) == 2)
	case '{':
		if len(val) > 1 && strings.IndexByte("{%\"\\", val[1]) >= 0 {
			return true // or a document, whose own names say what is secret
		}
		in := bytes.TrimSuffix(val[1:], []byte("}"))
		return len(in) < len(val)-1 && !(len(in) >= 20 && likelySecret(in, false)) // Maven encloses what it has encrypted
	case '<':
		return true
	case '(', '[':
		return true
	case '#':
		return len(val) > 1 && val[1] == '{'
	case '*', '&':
		return len(val) > 2 && isAlpha(val[1]) && !unlikely(val[1:]) && !(len(val) == 41 && isHex(val[1:])) // an alias, an address; not a hash of MySQL
	case '@':
		return len(val) > 1 && isAlpha(val[1])
	case '-':
		if len(val) > 2 && val[1] == '-' && isAlpha(val[2]) {
			return true // the next option
		}
	case '!': // a tag of YAML and what it refers to
		k := bytes.IndexByte(val, ' ')
		return k > 2 && letters(val[1:k])
	case '/':
		return len(val) > 1 && val[1] == '/'
	case '.':
		if bytes.HasPrefix(val, []byte("...")) {
			return true // the end of something longer
		}
	}
	for _, scheme := range [...]string{"arn:", "urn:", "vault:", "ref+", "projects/", "secretref:", "op://", "enc[", "kms:", "sealed:", "ssm:", "file:", "env:"} {
		if hasFold(val, scheme) {
			return true
		}
	}
	if bytes.Contains(val, []byte("%s%")) || bytes.Contains(val, []byte("%%")) {
		return true
	}
	return isFiller(val)
}

// isFiller reports one byte over and over, and what values are covered with.
func isFiller(val []byte) bool {
	same, filler := true, true
	for _, c := range val {
		same = same && c == val[0]
		filler = filler && (c == '*' || c == 'x' || c == 'X' || c == '.' || c == '-' || c == '_' || c == '#')
		if !same && !filler {
			return false
		}
	}
	return true
}

// isPattern reports regular expressions, alphabets, and characters written as escapes.
func isPattern(val []byte) bool {
	if val[0] == '^' || bytes.Contains(val, []byte("[0-9")) || bytes.Contains(val, []byte("[^")) || bytes.Contains(val, []byte("(?")) {
		return true
	}
	run, same, before := 1, 1, fold(val[0])
	for i := 1; i < len(val); i++ {
		c := fold(val[i])
		if c != before+1 || !isAlpha(c) {
			run = 0
		}
		before = c
		if run++; run >= 10 {
			return true
		}
		if val[i] != val[i-1] {
			same = 0
		}
		if same++; same >= 12 && same*2 >= len(val) {
			return true // filled up with one byte
		}
	}
	if val[0] != '\\' || len(val) < 6 || val[1]|0x20 != 'u' {
		return false
	}
	for i := 0; i < len(val); i++ {
		if val[i] == '\\' && i+1 < len(val) {
			i++
		} else if !sets[setXDigit].has(val[i]) {
			return false
		}
	}
	return true
}

// isConstant reports the words that stand for "no value here".
func isConstant(val []byte) bool {
	if digits, _, _ := tally(val); digits > 0 && strings.IndexByte("iIrRyY", val[0]) < 0 {
		return false
	}
	switch strings.ToLower(string(bytes.Trim(val, "*"))) {
	case "undefined", "changeme", "change-me", "change_me", "redacted", "[redacted]", "filtered", "[filtered]", "sensitive",
		"(sensitive value)", "required", "not-set", "not_set", "replaceme", "replace-me", "replace_me", "todo-later", "insecure", "notsecret", "optional", "disabled", "enabled", "omitted", "placeholder", "nullptr":
		return true
	}
	if hasFold(val, "replace") || hasFold(val, "insert") {
		return wordy(val)
	}
	return hasFold(val, "your") && len(val) > 4 && (val[4] == '_' || val[4] == '-' || isUpper(val[4]) || val[4] == ' ')
}

func placeholderWord(val []byte) bool {
	if isConstant(val) {
		return true
	}
	switch strings.ToLower(string(val)) {
	case "password", "passwd", "passwort", "anonymous", "guestguest", "password1", "rootroot", "admin123", "secret", "username", "user_password", "yourpassword", "mypassword", "foobar",
		"pass_word", "postgres":
		return true
	}
	return false
}

// numeric are the bytes of numbers, dates, durations and versions.
var numeric = byteSet{bitsDigit | bitsDot | bitsDash | bitsPlus | bitsSlash | 1<<':' | 1<<',',
	1<<('A'-64) | 1<<('B'-64) | 1<<('C'-64) | 1<<('D'-64) | 1<<('E'-64) | 1<<('F'-64) | 1<<('G'-64) | 1<<('M'-64) | 1<<('T'-64) | 1<<('X'-64) | 1<<('Z'-64) | bitsScore |
		1<<('a'-64) | 1<<('b'-64) | 1<<('c'-64) | 1<<('d'-64) | 1<<('e'-64) | 1<<('f'-64) | 1<<('h'-64) | 1<<('i'-64) | 1<<('k'-64) | 1<<('m'-64) | 1<<('n'-64) | 1<<('s'-64) |
		1<<('u'-64) | 1<<('v'-64) | 1<<('x'-64)}

// isNumeric reports numbers, dates, durations and versions.
func isNumeric(val []byte) bool {
	if !allOf(val, &numeric) {
		return false
	}
	if len(val) <= 20 && hasFold(val, "0x") && isHex(bytes.ReplaceAll(val[2:], []byte("_"), nil)) {
		return true
	}
	digits, letters, dots := 0, 0, 0
	for i, c := range val {
		switch {
		case isDigit(c):
			digits++
		case c == '.':
			dots++
		case c == '-' || c == ':' || c == ',' || c == '+' || c == '/' || c == '_':
		case c == 'T' || c == 'Z' || c == 'e' || c == 'E' || c == 'v' && i == 0:
			letters++
		case c == 'x' && i == 1 && val[0] == '0':
			letters++
		case c == 'h' || c == 'm' || c == 's' || c == 'u' || c == 'n' || c == 'k' || c == 'M' || c == 'G' || c == 'B' || c == 'i':
			letters++
		default:
			return false
		}
	}
	return letters <= 1 || letters == 2 && len(val) > 10 && val[10] == 'T' && val[len(val)-1] == 'Z' || letters <= 3 && dots+digits >= len(val)-4 && bytes.Count(val, []byte("E")) < 2
}

// isPathOrHost reports paths of words, hosts and URLs; a URL with a password is
// judged at its "://".
func isPathOrHost(val []byte) bool {
	if bytes.Contains(val, []byte("://")) {
		return true
	}
	path := val[0] == '/' || val[0] == '~' || bytes.HasPrefix(bytes.TrimLeft(val, "."), []byte("/")) ||
		len(val) > 3 && isAlpha(val[0]) && val[1] == ':' && (val[2] == '\\' || val[2] == '/')
	slash := bytes.IndexByte(val, '/') >= 0
	if path && slash || slash {
		for _, part := range bytes.FieldsFunc(val, func(r rune) bool { return r == '/' || r == '.' || r == '\\' }) {
			if len(part) >= 8 && unlikely(part) && !isVersioned(part) && !(path && isHex(part)) { // objects and layers lie in such paths
				return false
			}
		}
		if path {
			return true
		}
		digits, upper, lower := tally(val)
		return digits == 0 || upper == 0 || lower == 0
	}
	host, port, hasPort := bytes.Cut(val, []byte(":"))
	labels := bytes.Split(host, []byte("."))
	if len(labels) < 2 && !hasPort || !allOf(port, &sets[setDigit]) {
		return false
	}
	for _, l := range labels {
		if len(l) == 0 || len(l) >= 8 && unlikely(l) {
			return false
		}
		for _, c := range l {
			if !isLower(c) && !isDigit(c) && c != '-' {
				return false
			}
		}
	}
	last := labels[len(labels)-1]
	return len(last) >= 2 && letters(last) && !(len(last) == 4 && unlikely(last)) || hasPort
}

// hasPassword reports user:password@ at the beginning of an address without a scheme.
func hasPassword(val []byte) bool {
	_, rest, ok := bytes.Cut(val, []byte(":"))
	at := bytes.LastIndexByte(rest, '@')
	return ok && at >= 6 && bytes.IndexByte(rest[:at], '/') < 0 && likelySecret(rest[:at], true)
}

// isVersioned reports words joined with a number, as directories are.
func isVersioned(part []byte) bool {
	for _, w := range bytes.FieldsFunc(part, func(r rune) bool { return r == '-' || r == '_' || r >= '0' && r <= '9' }) {
		if len(w) >= 5 && unlikely(w) {
			return false
		}
	}
	digits, _, _ := tally(part)
	return digits*2 < len(part)
}

// isVersion reports what package managers print as versions: 1:4.13+dfsg1-1+deb12u1.
func isVersion(val []byte) bool {
	p := 0
	digits := func() bool {
		from := p
		for p < len(val) && isDigit(val[p]) {
			p++
		}
		return p > from
	}
	if val[0] == 'v' {
		p++
	}
	if !digits() {
		return false
	}
	if p < len(val) && val[p] == ':' {
		if p++; !digits() {
			return false
		}
	}
	if p == len(val) || val[p] != '.' {
		return false
	}
	if p++; !digits() {
		return false
	}
	for ; p < len(val); p++ {
		if c := val[p]; !isLower(c) && !isDigit(c) && strings.IndexByte(".+~-:", c) < 0 {
			return false
		}
	}
	return true
}

// isArtifact reports a name and a version as package managers join them: jjwt-jackson-0.11.2.
func isArtifact(val []byte) bool {
	k := bytes.LastIndexByte(val, '-')
	if k < 4 || k+1 == len(val) || !isLower(val[0]) || !isVersion(val[k+1:]) {
		return false
	}
	for _, c := range val[:k] {
		if !isLower(c) && !isDigit(c) && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// genericBytes are those of a type with parameters.
var genericBytes = byteSet{bitsDigit | bitsDot | 1<<'<' | 1<<'>' | 1<<',' | 1<<' ' | 1<<':' | 1<<'&' | 1<<'\'' | 1<<'?', bitsLetter | bitsScore | 1<<('['-64) | 1<<(']'-64)}

func isUUID(val []byte) bool {
	if len(val) != 36 {
		return false
	}
	for i, c := range val {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash && c != '-' || !dash && !sets[setXDigit].has(c) {
			return false
		}
	}
	return true
}

// isDigest reports sha256-… and sha256:… and their like.
func isDigest(val []byte) bool {
	for _, p := range [...]string{"sha1", "sha256", "sha384", "sha512", "md5", "blake2b", "blake3"} {
		if hasFold(val, p) && len(val) > len(p) {
			switch val[len(p)] {
			case '-', ':', '=', '~', '/':
				return true
			}
		}
	}
	return false
}

// oddPart reports a part between dashes that reads like no word: no identifier has one.
func oddPart(val []byte) bool {
	if bytes.IndexByte(val, '-') < 0 {
		return false
	}
	for part := range bytes.SplitSeq(val, []byte("-")) {
		if len(part) >= 5 && letters(part) && !sameCase(part) && unlikely(part) {
			return true
		}
	}
	return false
}

// isCode reports an unquoted identifier, call, index or selector.
func isCode(val []byte) bool {
	digits, upper, lower := tally(val)
	if digits+upper+lower == len(val) {
		return digits == 0 && !unlikely(val)
	}
	for i, c := range val {
		switch c {
		case '(', '[':
			return i > 0 && (isAlnum(val[i-1]) || strings.IndexByte("_!?", val[i-1]) >= 0)
		case '{':
			return i > 0 && isIdent(val[i-1])
		case '<': // a type with its parameters
			if i > 0 && val[len(val)-1] == '>' && isUpper(val[0]) && digits*8 <= len(val) {
				return allOf(val, &genericBytes)
			}
		}
	}
	if bytes.Contains(val, []byte("->")) || bytes.Contains(val, []byte("::")) || bytes.Contains(val, []byte("&&")) ||
		bytes.Contains(val, []byte("),")) {
		return true
	}
	if !isAlpha(val[0]) && val[0] != '_' && val[0] != '&' && val[0] != '*' && val[0] != '!' {
		return false
	}
	if k := bytes.LastIndexByte(val, '.'); k > 0 && k+1 < len(val) && isDigit(val[k+1]) {
		return false // no identifier begins with a digit
	}
	joints := 0
	for _, c := range val {
		if strings.IndexByte("_.-:=?&|!,;", c) >= 0 {
			joints++
		}
	}
	if (digits == 0 || bytes.IndexByte(val, '.') > 0 && digits*8 <= len(val)) && digits+upper+lower+joints >= len(val)-1 && !oddPart(val) {
		return !unlikely(val) || bytes.IndexByte(val, '.') > 0 && !unlikely(val[bytes.LastIndexByte(val, '.')+1:])
	}
	return false
}
