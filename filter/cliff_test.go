package filter

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/rand"
	"os"
	"slices"
	"strings"
	"testing"
)

// cliffs are texts that keep some part of the filter busy: names, prefixes and forms side by
// side, values that never end.
func cliffs() map[string]string {
	out := map[string]string{}
	for _, kw := range &keywords {
		for _, sep := range []string{"=", ":", " ", `="`, `":"`, ",", "|", "&", ";", "\t", "->", "-", "_", " = ", ": ", "\n", ":\n  ", "%3D", "&quot;:", "','", "<", `\":\"`} {
			out[kw.word+sep] = kw.word + sep
		}
	}
	for _, p := range &builtinPrefixes {
		out[p.text] = p.text
		out[p.text+"a"] = p.text + "a"
		out[p.text+"aB3"] = p.text + "aB3dE5fG7"
	}
	for k := range vendorNames {
		out[vendorNames[k].word+"="] = vendorNames[k].word + "="
	}
	for _, unit := range []string{"://", "http://", "http://a:b", "a://b@", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n", "eyJhbGciOi",
		"eyJhbGciOiJIUzI1NiJ9.", "apiVersion: v1\ndata:\n", "data:", "data\":", " -p", " -u", "curl -u ", "mysql -p", "sshpass -p a", "\\", "\\\"", "\"", "'", "{\"", "%22", "&quot;",
		"password=\"", "password='a", "\"password\":\"a\\", "token=a&", "token=a;", "Cookie: a=b; ", "Set-Cookie: a=", "Authorization: Bearer a", "Authorization: ",
		"user,password\n", "a | password |\n", "NAME  PASSWORD\n", "\"name\":\"password\",", "name: password\n", "<name>password</name>", "password for a", "password is ",
		"password: |\n ", "\x1b[0m", "\x1b", "\x1b]", "a\b", "\x1b[", "\x0e", "\x00", "\x00\x00\x00", "\x01\x02\x03", "[REDACTED:", "password=[REDACTED:", "a=b\x00", "ab", " ", "\n", "a",
		"password(", "password: String = ", "password := New(", "x password ", "password $", "key-", "AAAA", "a.b.", "secret secret ", "set password ", "ä", "\xff",
		"db:5432:", ":*:*:", "password=p&a=", "LS0tLS1CRUdJTi", "0123456789abcdef", "token: eyJ", "xoxb-1", "sk-", "AKIA", "ghp_", "1//0", "api_key\n", "key,", "a,token,"} {
		out[unit] = unit
	}
	return out
}

// atoms are what a random text is made of.
var atoms = []string{"password", "secret", "token", "key", "api_key", "auth", "pass", "Authorization", "Cookie", "=", ":", ": ", " = ", " ", "\t", "\n", "\n  ", "\"", "'", "`", "\\", "\\\"",
	"{", "}", "[", "]", "(", ")", "<", ">", "</", ",", ";", "|", "&", "%3D", "%22", "&quot;", "->", "=>", ":=", "::", "||", "://", "@", "a", "aB3", "eyJ", "eyJhbGciOi", ".", "-", "--", "_", "/",
	" -p ", " -u ", "mysql", "curl", "ghp_", "sk-", "AKIA", "xox", "-----BEGIN ", " is ", " for ", " (", "...", "<<", "\x1b[0m", "\x00", "name", "value", "data:", "string(9) "}

// TestNoCliff: no text costs more than ten times a benign log, its secrets included. The cost is
// counted in bytes, judgements and findings, so that a busy machine makes no difference; their weights
// are what each took of the time, measured in November 2026.
func TestNoCliff(t *testing.T) {
	benign, _, _ := costOf(t, buildLog(1<<20, false))
	const size = 1 << 20 // much more than comes out of the stores
	share := 40
	if os.Getenv("CLIFF") == "all" {
		share = 1
	}
	type shape struct {
		name string
		text func() []byte
	}
	var shapes []shape
	for _, unit := range slices.Sorted(maps.Keys(cliffs())) {
		shapes = append(shapes, shape{unit, func() []byte { return []byte(strings.Repeat(unit, 1+size/len(unit))) }})
	}
	// Those that follow are picked by their own number, so that a new keyword does not change which. It
	// began at 17 when they were first looked at.
	units, began := len(shapes), 17
	rng := rand.New(rand.NewSource(7))
	for range 3000 {
		unit := ""
		for range 1 + rng.Intn(4) {
			unit += atoms[rng.Intn(len(atoms))]
		}
		shapes = append(shapes, shape{unit, func() []byte { return []byte(strings.Repeat(unit, 1+size/len(unit))) }})
	}
	for _, name := range []string{"password", "pwd", "psk", "pass", "secret", "a_key", "api_key", "token", "auth", "x-api-key", "Cookie: a"} {
		for _, join := range []string{"=%\n", ": %\n", " %\n", "=\"%\"\n", "='%' ", "\":\"%\",\"", "=%&", "\t%\n", " = %;"} {
			for _, n := range []int{6, 8, 9, 12, 16, 24, 40} {
				shapes = append(shapes, shape{fmt.Sprint(name, join, n), func() []byte { return crowdOf(rand.New(rand.NewSource(7)), name+join, n, size) }})
			}
		}
	}
	for _, prefix := range []string{"ghp_", "AKIA", "xoxb-", "sk-", "AIza", "npm_"} { // not all of them become tokens
		for _, n := range []int{3, 16, 36} {
			shapes = append(shapes, shape{fmt.Sprint(prefix, n), func() []byte { return crowdOf(rand.New(rand.NewSource(7)), prefix+"% ", n, size) }})
		}
	}
	for k := range 1500 { // other values each time
		unit := ""
		for range 1 + rng.Intn(4) {
			if unit += atoms[rng.Intn(len(atoms))]; rng.Intn(2) == 0 {
				unit += "%"
			}
		}
		shapes = append(shapes, shape{unit, func() []byte { return crowdOf(rand.New(rand.NewSource(7)), unit+"%", 3+k%17, size) }})
	}
	// What a search found, or costs in time, whatever the share.
	always := len(shapes)
	for _, unit := range []string{"userpw = passwd_heslo\":\"", "userpw = keys,NRAL-apasswd_heslo\":\"", "securestring\":\"pass_phrase<", "$1$adminpw\\\":\\\"", "<<adminpw\\\":\\\"token:",
		"passcode\\\":\\\":=xapt-", "\"password\":\"a\\", "adminpw&quot;:dt0s03.aB3authorization=\"1//0", "auth: value\n", "secret id\":\"", "secret id\\\":\\\"", "=>\\data:key"} {
		shapes = append(shapes, shape{unit, func() []byte { return []byte(strings.Repeat(unit, 1+size/len(unit))) }})
	}
	for _, n := range []int{6, 16, 40} {
		shapes = append(shapes, shape{fmt.Sprint("x-api-key\t%\n", n), func() []byte { return crowdOf(rand.New(rand.NewSource(7)), "x-api-key\t%\n", n, size) }})
	}
	worst := 0.0
	for k := range shapes {
		number := k
		if k >= units {
			number += began - units
		}
		if k < always && number%share != 0 {
			continue
		}
		text := shapes[k].text()
		// The stores make the beginning of a text its dearest part, so that of most the whole need not be read.
		if c, _, _ := costOf(t, text[:len(text)/8]); c < 5*benign && k < always {
			continue
		}
		c, judgements, findings := costOf(t, text)
		if worst = max(worst, c/benign); c > 10*benign {
			t.Errorf("%q: %d judgements and %d findings in %d bytes cost %.1f times a benign log", shapes[k].name, judgements, findings, len(text), c/benign)
		}
	}
	t.Logf("a benign log costs %.2f times reading it, the worst text %.1f times as much as that", benign, worst)
}

// costOf counts what a text costs, in times that of reading its bytes.
func costOf(t *testing.T, text []byte) (cost float64, judgements, findings int64) {
	const perJudgement, perFinding = 40, 60
	w := testSet(t, Config{NoMemory: true}, "A_TOKEN=aB3dE5fG7hJ9kL1mN3pQ").Writer(io.Discard, Stdout)
	for rest := text; len(rest) > 0; {
		n := min(len(rest), piece)
		w.Write(rest[:n])
		rest = rest[n:]
	}
	w.Close()
	for _, c := range w.Report().Redactions {
		findings += c.Count
	}
	return 1 + float64(perJudgement*w.e.work+perFinding*findings)/float64(len(text)), w.e.work, findings
}

// TestSearchForCliffs looks for texts that cost more than those of TestNoCliff: it changes the
// dearest of what it tried. CLIFF=all makes it look longer.
func TestSearchForCliffs(t *testing.T) {
	rng := rand.New(rand.NewSource(11))
	tries := 40
	if os.Getenv("CLIFF") == "all" {
		tries = 4000
	}
	const size = 768 << 10
	benign, _, _ := costOf(t, buildLog(size, false))
	pieces := slices.Concat(atoms, slices.Sorted(maps.Keys(cliffs())), strings.Split(strings.Repeat("%", 60), ""))
	for k := range keywords {
		pieces = append(pieces, keywords[k].word)
	}
	type shape struct {
		parts []string
		cost  float64
	}
	var best []shape
	for range tries {
		var s shape
		if len(best) < 10 || rng.Intn(4) == 0 {
			for range 1 + rng.Intn(5) {
				s.parts = append(s.parts, pieces[rng.Intn(len(pieces))])
			}
		} else {
			s.parts = slices.Clone(best[rng.Intn(len(best))].parts)
			at, piece := rng.Intn(len(s.parts)), pieces[rng.Intn(len(pieces))]
			switch {
			case rng.Intn(3) == 0:
				s.parts[at] = piece
			case len(s.parts) < 10:
				s.parts = slices.Insert(s.parts, at, piece)
			default:
				s.parts = slices.Delete(s.parts, at, min(at+1+rng.Intn(3), len(s.parts)))
			}
		}
		unit := strings.Join(s.parts, "")
		if len(unit) > 200 {
			continue
		}
		text := crowdOf(rand.New(rand.NewSource(1)), unit, 9, size)
		if s.cost, _, _ = costOf(t, text[:size/8]); s.cost > 10*benign { // which is its dearest part: see TestNoCliff
			if cost, judgements, findings := costOf(t, text); cost > 10*benign {
				t.Errorf("%q: %d judgements and %d findings cost %.1f times a benign log", unit, judgements, findings, cost/benign)
			}
		}
		best = append(best, s)
		slices.SortStableFunc(best, func(a, b shape) int { return cmp.Compare(b.cost, a.cost) })
		best = best[:min(len(best), 20)]
	}
	t.Logf("the worst: %.1f times, %q", best[0].cost/benign, strings.Join(best[0].parts, ""))
}

// TestJam: where names and values jam, each secret is masked as elsewhere, whatever the cuts, and
// text behind them is judged as before.
func TestJam(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	for _, unit := range []string{"userpw = passwd_heslo\":\"", "$1$adminpw\\\":\\\"", "\"password\":\"a\\", "securestring\":\"pass_phrase<"} {
		var b strings.Builder
		var secrets []string
		for b.Len() < 512<<10 {
			b.WriteString(strings.Repeat(unit, 90))
			secret := tokens(t, "{alnum:9}") + fmt.Sprint("!x", len(secrets))
			if len(secrets)%2 == 0 {
				secret = string(crowdOf(rng, "%", 17, 17)) + "7"
			}
			secrets = append(secrets, secret)
			fmt.Fprintf(&b, "\"\nDB_PASSWORD=%s\n{\"token\": \"%s\", \"n\": 1234567890, \"ok\": true}\nhttps://bob:%s@host/\n", secret, secret, secret)
		}
		quiet := "\n" + strings.Repeat("nothing to hide in this line\n", 1<<13)
		whole := b.String() + quiet + "\npassword=get_first_token\ntoken=aB3dE5fG7hJ9kL1mN3pQ\n"
		set := func() *Set { return testSet(t, Config{NoMemory: true}) }
		got := filterAll(t, set(), whole)
		if !strings.Contains(got, "[REDACTED:"+crowdRule) {
			t.Errorf("%q does not jam", unit)
		}
		for _, secret := range secrets {
			if strings.Contains(got, secret) {
				t.Errorf("%q: %s is left", unit, secret)
				break
			}
		}
		if strings.Count(got, "\"n\": 1234567890, \"ok\": true}") != len(secrets) {
			t.Errorf("%q: numbers were touched", unit)
		}
		if !strings.Contains(got, quiet+"\npassword=get_first_token\ntoken=[REDACTED:token:") {
			t.Errorf("%q: what follows is not judged as before: %q", unit, got[len(got)-200:])
		}
		atRandomCuts(t, set(), unit, whole, got, rng)
	}
}

// atRandomCuts filters a text once more, cut anywhere, which must give what it gave whole.
func atRandomCuts(t *testing.T, set *Set, unit, whole, got string, rng *rand.Rand) {
	t.Helper()
	var sizes []int
	for total := 0; total < len(whole); total += sizes[len(sizes)-1] {
		sizes = append(sizes, 1+rng.Intn(5000))
	}
	if cut := filterCuts(t, set, whole, sizes...); cut != got {
		t.Errorf("%q: the output depends on the cuts: %s", unit, firstDifference(cut, got))
	}
}

// crowdOf repeats a unit, with another random value of n bytes for each % in it.
func crowdOf(rng *rand.Rand, unit string, n, size int) []byte {
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	var b []byte
	for len(b) < size {
		for _, c := range []byte(unit) {
			if c != '%' {
				b = append(b, c)
				continue
			}
			for range n {
				b = append(b, alphabet[rng.Intn(len(alphabet))])
			}
		}
	}
	return b
}

// TestCrowd: where secrets crowd, each is masked as elsewhere, whatever the cuts, and text behind
// them is judged as before.
func TestCrowd(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	for _, unit := range []string{"password=x1%\n", "secret %a1\n", "{\"token\":\"a1%B\"},", "api_key = %a1b2\n", "pwd: '%a1', "} {
		text := crowdOf(rng, unit, 14, 48<<10)
		quiet := "\n" + strings.Repeat("nothing to hide in this line\n", 1<<17)
		last := "\npassword=get_first_token\ntoken=aB3dE5fG7hJ9kL1mN3pQ\n"
		whole := string(text) + quiet + last
		set := func() *Set { return testSet(t, Config{NoMemory: true}) }
		got := filterAll(t, set(), whole)
		alone := 0
		for _, one := range strings.SplitAfter(string(text), unit[strings.IndexByte(unit, '%')+1:]) {
			alone += strings.Count(filterAll(t, set(), one), placeholderHead)
		}
		if marks := strings.Count(got[:strings.Index(got, quiet)], placeholderHead); marks < alone {
			t.Errorf("%q: %d are masked, %d of them alone", unit, marks, alone)
		}
		if !strings.Contains(got, "password=get_first_token\n") || !strings.Contains(got, "token=[REDACTED:token:") {
			t.Errorf("%q: what follows is not judged as before: %q", unit, got[len(got)-200:])
		}
		atRandomCuts(t, set(), unit, whole, got, rng)
	}
}
