package filter

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
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

// TestNoCliff: no input costs more than ten times what a benign log does. The bound here is
// wider, for machines that are busy; -v prints the slowest.
func TestNoCliff(t *testing.T) {
	cpu := func() time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			t.Fatal(err)
		}
		return time.Duration(r.Utime.Nano())
	}
	speed := func(text []byte) float64 {
		set := testSet(t, Config{}, "A_TOKEN=aB3dE5fG7hJ9kL1mN3pQ")
		w := set.Writer(io.Discard, Stdout)
		from := cpu()
		for rest := text; len(rest) > 0; {
			n := min(len(rest), piece)
			w.Write(rest[:n])
			rest = rest[n:]
		}
		w.Close()
		return float64(len(text)) / 1e6 / max(cpu()-from, time.Microsecond).Seconds()
	}
	benign := speed(buildLog(4<<20, false))
	only := os.Getenv("CLIFF")
	for name, unit := range cliffs() {
		switch only {
		case "all", name:
		case "":
			if len(name)%5 != 0 { // a fifth each time the suite runs; CLIFF=all for the rest
				continue
			}
		default:
			continue
		}
		text := []byte(strings.Repeat(unit, 1+(64<<10)/len(unit)))
		if s := speed(text); s < benign/10 {
			t.Logf("%7.2f MB/s of %.0f: %q", s, benign, name)
			if s < benign/80 {
				t.Errorf("%q: %.2f MB/s, a benign log %.0f", name, s, benign)
			}
		}
	}
}
