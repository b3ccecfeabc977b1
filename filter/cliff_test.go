package filter

import (
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

// TestNoCliff: what is judged for each byte of a text is bounded, whatever the text: ten times
// as much as in a benign log, besides what comes at once and what was a secret. It counts, so
// that a busy machine makes no difference.
func TestNoCliff(t *testing.T) {
	work := func(text []byte) (n int64, findings int64) {
		set := testSet(t, Config{NoMemory: true}, "A_TOKEN=aB3dE5fG7hJ9kL1mN3pQ")
		w := set.Writer(io.Discard, Stdout)
		for rest := text; len(rest) > 0; {
			n := min(len(rest), piece)
			w.Write(rest[:n])
			rest = rest[n:]
		}
		w.Close()
		for _, c := range w.Report().Redactions {
			findings += c.Count
		}
		return w.e.work, findings
	}
	log := buildLog(1<<20, false)
	n, _ := work(log)
	benign := float64(n) / float64(len(log))
	const size = 512 << 10 // much more than comes out of the store
	share := 24
	if os.Getenv("CLIFF") == "all" {
		share = 1
	}
	units := slices.Sorted(maps.Keys(cliffs()))
	rng := rand.New(rand.NewSource(7))
	for range 3000 {
		unit := ""
		for range 1 + rng.Intn(4) {
			unit += atoms[rng.Intn(len(atoms))]
		}
		units = append(units, unit)
	}
	worst := 0.0
	for k, unit := range units {
		if k%share != 0 {
			continue
		}
		text := []byte(strings.Repeat(unit, 1+size/len(unit)))
		n, findings := work(text)
		const call = 24 // of one name: its links, and the values they announce
		rest := float64(n-call*(3*densityStore+findings)) / float64(len(text)) / benign
		if worst = max(worst, rest); rest > 10 {
			t.Errorf("%q: %d judgements and %d findings in %d bytes are %.1f times those of a benign log", unit, n, findings, len(text), rest)
		}
	}
	t.Logf("a benign log has %.3f for each byte, the worst text %.1f times as many", benign, worst)
}
