package filter

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/place"
)

// longestShared is the length of the longest piece of secret that text shows.
func longestShared(text, secret string) int {
	best := 0
	for i := range secret {
		for j := i + best + 1; j <= len(secret) && strings.Contains(text, secret[i:j]); j++ {
			best = j - i
		}
	}
	return best
}

func TestKnownVariants(t *testing.T) {
	plain := tokens(t, "{alnum:24}")
	odd := "p&" + tokens(t, "{alnum:10}") + `/"<` + tokens(t, "{alnum:8}") + `'+ ü=`
	b64 := base64.StdEncoding.EncodeToString
	js := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	for name, v := range map[string]string{"plain": plain, "odd": odd} {
		s := testSet(t, Config{}, "DEPLOY_TOKEN="+v)
		forms := map[string]string{
			"raw":              v,
			"json":             js(v),
			"json in json":     js(js(v)),
			"go":               strconv.Quote(v),
			"go ascii":         strconv.QuoteToASCII(v),
			"shell":            "'" + strings.ReplaceAll(v, "'", `'\''`) + "'",
			"html":             html.EscapeString(v),
			"query":            url.QueryEscape(v),
			"path":             url.PathEscape(v),
			"hex":              hex.EncodeToString([]byte(v)),
			"HEX":              strings.ToUpper(hex.EncodeToString([]byte(v))),
			"base64":           b64([]byte(v)),
			"base64 newline":   b64([]byte(v + "\n")),
			"base64 user":      b64([]byte("user:" + v)),
			"base64 u":         b64([]byte("u:" + v)),
			"base64 us":        b64([]byte("us:" + v + "xyz")),
			"base64 unpadded":  base64.RawStdEncoding.EncodeToString([]byte(v)),
			"base64 url":       base64.URLEncoding.EncodeToString([]byte("user:" + v)),
			"wrapped":          v[:12] + "\n    " + v[12:],
			"wrapped terminal": v[:12] + " \r" + v[12:],
			"environ":          "A=b\x00X=" + v + "\x00C=d\x00",
		}
		for form, text := range forms {
			t.Run(name+"/"+form, func(t *testing.T) {
				out := filterAll(t, s, "before "+text+" after\n")
				if !strings.Contains(out, "[REDACTED:env.DEPLOY_TOKEN:") {
					t.Fatalf("not masked: %q", out)
				}
				if n := longestShared(out, v); n > 4 {
					t.Errorf("%d bytes of it in a row are left: %q", n, out)
				}
				if !strings.HasPrefix(out, "before ") || !strings.HasSuffix(out, " after\n") {
					t.Errorf("too much is masked: %q", out)
				}
			})
		}
		tags := map[string]bool{}
		for _, text := range forms {
			out := filterAll(t, s, text+"\n")
			i := strings.Index(out, "DEPLOY_TOKEN:")
			tags[out[i+13:i+19]] = true
		}
		if len(tags) != 1 {
			t.Errorf("%s: %d tags for one value", name, len(tags))
		}
	}
}

func TestKnownMultiline(t *testing.T) {
	key := tokens(t, "{base64:64}") + "\n" + tokens(t, "{base64:63}") + "\n" + tokens(t, "{base64:30}")
	s := testSet(t, Config{}, "SIGNING_KEY="+key)
	for _, text := range []string{key, strings.ReplaceAll(key, "\n", "\r\n"), strings.ReplaceAll(key, "\n", `\n`),
		strings.ReplaceAll(key, "\n", "\n    "), "+ x='" + key + "'"} {
		out := filterAll(t, s, text+"\nrest\n")
		if n := longestShared(out, key); n > 4 || !strings.HasSuffix(out, "\nrest\n") {
			t.Errorf("%d bytes left of %q: %q", n, text, out)
		}
	}
}

func TestNotSecret(t *testing.T) {
	for _, v := range []string{"none", "true", "12345678901", "eu-central-1", "/usr/local/share/keys", "password", "development",
		"test-token12", "        ", "aaaaaaaaaaaa", "v1.22.333", "changeme", "2024-05-06", "https", "default", "us-gov-west-1", "[REDACTED:password]"} {
		known, err := Collect(Sources{Env: []string{"FOO_TOKEN=" + v}})
		if err != nil {
			t.Fatal(err)
		}
		if known.Loaded != 0 || len(known.Skipped) != 1 || known.Skipped[0].Reason == "" {
			t.Errorf("%q: loaded %d, skipped %v", v, known.Loaded, known.Skipped)
		}
		s, err := NewSet(Config{}, known, TagKey{})
		if err != nil {
			t.Fatal(err)
		}
		text := "the value " + v + " stays\n"
		if out := filterAll(t, s, text); out != text {
			t.Errorf("%q became %q", text, out)
		}
	}
}

func TestVariableNames(t *testing.T) {
	for name, want := range map[string]nameKind{
		"GITHUB_TOKEN": nameSecret, "aws_secret_access_key": nameSecret, "PGPASSWORD": nameSecret, "DB_PASSWD": nameSecret,
		"OPENAI_API_KEY": nameSecret, "STRIPE_APIKEY": nameSecret, "SENTRY_DSN": nameSecret, "DOCKER_AUTH": nameSecret,
		"AZURE_STORAGE_CONNECTION_STRING": nameSecret, "KEY_B64": nameOther, "SIGNING_KEY_B64": nameSecret, "DATABASE_URL": nameURL,
		"HTTPS_PROXY": nameURL, "GOOGLE_APPLICATION_CREDENTIALS_FILE": nameExempt, "AWS_ACCESS_KEY_ID": nameOther, "TOKEN_TTL": nameExempt,
		"MAX_TOKENS": nameExempt, "SSH_AUTH_SOCK": nameOther, "PATH": nameOther, "KEYBOARD": nameOther, "SECRET_NAME": nameExempt,
	} {
		if got := secretNameKind(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func TestDerivedValues(t *testing.T) {
	v, p := tokens(t, "{alnum:20}"), tokens(t, "{alnum:9}")
	s := testSet(t, Config{}, "SIGNING_KEY_B64="+base64.StdEncoding.EncodeToString([]byte(v)), "DATABASE_URL=postgres://u:"+p+"%2F%40x@h/db")
	out := filterAll(t, s, "a "+v+" b "+p+"/@x c "+p+"%2F%40x d\n")
	if untag(out) != "a [REDACTED:env.SIGNING_KEY_B64:T] b [REDACTED:env.DATABASE_URL:T] c [REDACTED:env.DATABASE_URL:T] d\n" {
		t.Errorf("%q", out)
	}
}

func TestCollectFiles(t *testing.T) {
	home := t.TempDir()
	n := 0
	secret := func() string {
		n++
		v, _ := ExpandTemplate("{alnum:20}", uint64(100+n))
		return v
	}
	var all []string
	write := func(name, format string, values ...any) {
		t.Helper()
		for i, v := range values {
			if v == "" {
				values[i] = secret()
				all = append(all, values[i].(string))
			}
		}
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, fmt.Appendf(nil, format, values...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	docker := secret()
	all = append(all, docker)
	write(".netrc", "machine a login bob password %s\nmachine b\n  login c\n  password %s\n", "", "")
	write(".aws/credentials", "[default]\naws_access_key_id = AKIA\naws_secret_access_key = %s\naws_session_token=%s\n", "", "")
	write(".npmrc", "//registry.npmjs.org/:_authToken=%s\n", "")
	write(".pypirc", "[pypi]\nusername = __token__\npassword = %s\n", "")
	write(".docker/config.json", `{"auths":{"r":{"auth":"%s"}}}`, base64.StdEncoding.EncodeToString([]byte("bob:"+docker)))
	write(".config/gh/hosts.yml", "github.com:\n    oauth_token: %s\n    user: bob\n", "")
	write(".kube/config", "users:\n- name: a\n  user:\n    token: %s\n    client-key-data: %s\n", "", "")
	write(".git-credentials", "https://bob:%s@github.com\n", "")
	write(".pgpass", "host:5432:db:bob:%s\n# comment\n", "")
	write(".my.cnf", "[client]\npassword=\"%s\"\n", "")
	write(".cargo/credentials.toml", "[registry]\ntoken = \"%s\"\n", "")
	write(".terraform.d/credentials.tfrc.json", `{"credentials":{"app.terraform.io":{"token":"%s"}}}`, "")
	write("extra", "%s\n", "")
	if err := os.Mkdir(filepath.Join(home, ".config/glab-cli"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(home, ".config/glab-cli/config.yml"), 0o700); err != nil {
		t.Fatal(err)
	}
	var files []CredentialFile
	for _, f := range place.Credentials(home, func(string) string { return "" }) {
		files = append(files, CredentialFile{Source: f.Source, Path: f.Path, Format: string(f.Format)})
	}
	if _, err := Collect(Sources{Files: []CredentialFile{{Path: home}}}); err == nil {
		t.Error("a file of no format is left out silently")
	}
	known, err := Collect(Sources{Home: home, Files: files, ExtraFiles: []string{"~/extra", "~/missing"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(known.Unreadable) != 1 {
		t.Errorf("unreadable: %v", known.Unreadable)
	}
	s, err := NewSet(Config{}, known, TagKey{})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range all {
		if out := filterAll(t, s, "x "+v+" y\n"); strings.Contains(out, v) {
			t.Errorf("value %d is not known: %s", i, out)
		}
	}
}

func TestCollectArgv(t *testing.T) {
	a, b, c := tokens(t, "{alnum:18}"), tokens(t, "{alnum:19}"), tokens(t, "{alnum:20}")
	known, err := Collect(Sources{Argv: []string{"tool", "--token", a, "--api-key=" + b, "https://u:" + c + "@h/", "--token-file", "/etc/passwd-file"}})
	if err != nil {
		t.Fatal(err)
	}
	if known.Loaded != 3 {
		t.Errorf("loaded %d: %v", known.Loaded, known.values)
	}
	s, _ := NewSet(Config{}, known, TagKey{})
	out, findings := s.String(`["` + a + `","` + b + `","` + c + `"]`)
	if strings.Contains(out, a) || strings.Contains(out, b) || strings.Contains(out, c) || len(findings) != 3 {
		t.Errorf("%s %v", out, findings)
	}
	if !strings.Contains(out, "[REDACTED:argv.--token:") {
		t.Errorf("%s", out)
	}
}

func TestLimits(t *testing.T) {
	var env []string
	for i := range maxKnown + 50 {
		v, _ := ExpandTemplate("{alnum:16}", uint64(i))
		env = append(env, fmt.Sprintf("V%d_TOKEN=%s", i, v))
	}
	known, err := Collect(Sources{Env: env})
	if err != nil {
		t.Fatal(err)
	}
	if known.Loaded != maxKnown || known.Dropped != 50 {
		t.Errorf("loaded %d, dropped %d", known.Loaded, known.Dropped)
	}
	if _, err := NewSet(Config{}, known, TagKey{}); err != nil {
		t.Error(err)
	}
	long := tokens(t, "{alnum:5000}")
	s := testSet(t, Config{}, "LONG_SECRET="+long)
	out := filterAll(t, s, "a "+long+" b\n")
	if untag(out) != "a [REDACTED:env.LONG_SECRET:T] b\n" {
		t.Errorf("%q", out[:min(len(out), 200)])
	}
}

// TestKnownPrivateKey: a key in a variable is found in whatever form it is printed.
func TestKnownPrivateKey(t *testing.T) {
	key := expandRecord(t, "-----BEGIN RSA PRIVATE KEY-----\n"+strings.Repeat("{base64:64}\n", 25)+"{base64:40}==\n-----END RSA PRIVATE KEY-----\n")
	lines := strings.Split(key, "\n")
	s := func() *Set { return testSet(t, Config{NoMemory: true}, "SIGNING_KEY="+key) }
	wrap := func(text string, n int) string {
		var b strings.Builder
		for len(text) > n {
			b.WriteString(text[:n] + "\n")
			text = text[n:]
		}
		return b.String() + text
	}
	b64 := base64.StdEncoding.EncodeToString
	quoted, _ := json.Marshal(key)
	for name, text := range map[string]string{
		"raw": key, "crlf": strings.ReplaceAll(key, "\n", "\r\n"), "json": string(quoted), "json in json": string(quoted[1 : len(quoted)-1]),
		"hex": hex.EncodeToString([]byte(key)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(key))), "percent": url.QueryEscape(key), "path": url.PathEscape(key),
		"base64": b64([]byte(key)), "base64 of user:key": b64([]byte("user:" + key)), "base64 of ab:key": b64([]byte("ab" + key)), "base64url": base64.URLEncoding.EncodeToString([]byte(key)),
		"base64 wrapped at 76": wrap(b64([]byte(key)), 76), "base64 wrapped at 64": wrap(b64([]byte("x"+key)), 64), "hex wrapped": wrap(hex.EncodeToString([]byte(key)), 60),
		"spaces": strings.ReplaceAll(key, "\n", " "), "base64 of crlf": b64([]byte(strings.ReplaceAll(key, "\n", "\r\n"))),
	} {
		in := "before " + text + " after\n"
		out := filterAll(t, s(), in)
		plain := strings.NewReplacer("\n", "", "\r", "").Replace(out)
		for _, form := range []string{lines[1], lines[9], hex.EncodeToString([]byte(lines[12])), b64([]byte(lines[3])), url.QueryEscape(lines[20])} {
			for from := 0; from+20 <= len(form); from += 7 {
				if strings.Contains(plain, form[from:from+20]) {
					t.Errorf("%s: %q is left in %.300q", name, form[from:from+20], plain)
					break
				}
			}
		}
		if rest := longestShared(plain, strings.NewReplacer("\n", "", "\r", "").Replace(text)); rest > 80 {
			t.Errorf("%s: %d bytes in a row are left", name, rest)
		}
		for _, size := range []int{1, 77} {
			if got := filterCuts(t, s(), in, size); got != out {
				t.Errorf("%s in writes of %d: %s", name, size, firstDifference(got, out))
			}
		}
	}
}
