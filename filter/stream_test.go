package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"
)

// recorder keeps what arrives, and the pieces that came as a whole.
type recorder struct {
	bytes.Buffer
	whole []string
}

func (r *recorder) WriteAtomic(p []byte) (int, error) {
	r.whole = append(r.whole, string(p))
	return r.Write(p)
}

// TestPromptsLeave: what cannot be a secret is out after the write, and what may
// be the beginning of one after a pause, unless it looks like one.
func TestPromptsLeave(t *testing.T) {
	s := testSet(t, Config{}, "DEPLOY_TOKEN="+tokens(t, "{alnum:24}"))
	for _, r := range []struct{ in, atOnce, paused string }{
		{"Password: ", "Password: ", "Password: "},
		{"Password:", "Password:", "="},
		{"Password (again):", "Password (again):", "="},
		{"Password for bob:", "Password for bob:", "="},
		{"The password is ", "The password is ", "="},
		{"token=", "token=", "="},
		{"using token +", "using token ", "="}, // an operator, or the first byte of a value
		{"curl --token /", "curl --token ", "="},
		{"$ ", "$ ", "$ "},
		{"\x1b[1mContinue?\x1b[0m [y/N] ", "\x1b[1mContinue?\x1b[0m [y/N] ", "="},
		{"\r50% |####  | ", "\r50% |####  | ", "="},
		{"http://localhost:3000", "http://", "="},
		{"token: waiting", "token: ", "="},
		{"\r-", "\r", "="},
		{"> -----BEGIN", "> ", "="},
		{"sk-", "", "="},
		{"mail ghp_" + tokens(t, "{alnum:4}"), "mail ", "="},
		{"mail ghp_" + tokens(t, "{alnum:20}"), "mail ", "mail "},
		{"https://bob:" + tokens(t, "{alnum:12}"), "https://", "https://"},
		{"api_key=" + tokens(t, "{alnum:24}"), "api_key=", "api_key="},
	} {
		var out bytes.Buffer
		w := s.Writer(&out, Stdout)
		io.WriteString(w, r.in)
		if out.String() != r.atOnce {
			t.Errorf("%q: at once %q, want %q", r.in, out.String(), r.atOnce)
		}
		if (w.Held() > 0) != (out.Len() < len(r.in)) {
			t.Errorf("%q: %d held, %d of %d out", r.in, w.Held(), out.Len(), len(r.in))
		}
		w.Idle()
		if w.Held() != 0 {
			t.Errorf("%q: another pause is asked for", r.in)
		}
		want := r.paused
		if want == "=" {
			want = r.in
		}
		if out.String() != want {
			t.Errorf("%q: after a pause %q, want %q", r.in, out.String(), want)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPausesInSecrets: with a pause after each byte at most the public prefix and
// five bytes of a token show.
func TestPausesInSecrets(t *testing.T) {
	v := tokens(t, "{alnum:24}")
	s := testSet(t, Config{NoMemory: true}, "DEPLOY_TOKEN="+v)
	for _, secret := range []string{tokens(t, "ghp_{alnum:36}"), tokens(t, "glpat-{alnum:20}"), v} {
		for cut := 1; cut < len(secret); cut++ {
			var out bytes.Buffer
			w := s.Writer(&out, Stdout)
			for _, p := range []string{"a " + secret[:cut], secret[cut:] + " b\n"} {
				io.WriteString(w, p)
				w.Idle()
			}
			w.Close()
			if n := longestShared(out.String(), secret); n > len("glpat-")+5 {
				t.Errorf("cut at %d shows %d bytes: %q", cut, n, out.String())
			}
			if !strings.Contains(out.String(), "[REDACTED:") || !strings.HasSuffix(out.String(), "] b\n") {
				t.Errorf("cut at %d: %q", cut, out.String())
			}
		}
	}
}

func TestLongToken(t *testing.T) {
	s := testSet(t, Config{})
	for _, in := range []string{"ghp_", `"api_key": "`, "Authorization: Bearer ", "eyJhbGciOiJIUzI1NiJ9."} {
		var out bytes.Buffer
		w := s.Writer(&out, Stdout)
		io.WriteString(w, "a "+in)
		part := []byte(tokens(t, "{alnum:65536}"))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 160 {
			w.Write(part)
		}
		runtime.ReadMemStats(&after)
		io.WriteString(w, "\" b\n")
		w.Close()
		if out.Len() > 100 || !strings.Contains(out.String(), "[REDACTED:") || !strings.HasSuffix(out.String(), " b\n") {
			t.Errorf("%q: %d bytes out: %.200q", in, out.Len(), out.String())
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
			t.Errorf("%q: %d bytes allocated for 10 MB", in, grown)
		}
	}
}

func TestLargeCleanStream(t *testing.T) {
	log := buildLog(4<<20, true)
	s := testSet(t, Config{}, someEnv(20)...)
	var n, diff int
	w := s.Writer(writerFunc(func(p []byte) (int, error) {
		if !bytes.Equal(p, log[n:n+len(p)]) {
			diff++
		}
		n += len(p)
		return len(p), nil
	}), Stdout)
	for rest := log; len(rest) > 0; {
		k := min(len(rest), 64<<10)
		w.Write(rest[:k])
		rest = rest[k:]
	}
	w.Close()
	if n != len(log) || diff > 0 {
		t.Errorf("%d of %d bytes, %d differences", n, len(log), diff)
	}
	if c := cap(w.e.view.raw) + cap(w.e.view.vis) + cap(w.pend); c > 1<<20 {
		t.Errorf("%d bytes of buffers", c)
	}
	if r := w.Report(); r.BytesIn != int64(n) || r.BytesOut != int64(n) || len(r.Redactions) != 0 || !r.Redacted {
		t.Errorf("%+v", r)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestMemoryBetweenStreams(t *testing.T) {
	s := testSet(t, Config{})
	key := tokens(t, "{alnum:32}")
	var out, errs recorder
	stdout, stderr := s.Writer(&out, Stdout), s.Writer(&errs, Stderr)
	io.WriteString(stdout, "before "+key+"\napi_key = "+key+"\nagain "+key+"\n")
	io.WriteString(stderr, "and "+key+"\n")
	stdout.Close()
	stderr.Close()
	if got := untag(out.String()); got != "before "+key+"\napi_key = [REDACTED:api-key:T]\nagain [REDACTED:api-key:T]\n" {
		t.Errorf("%q", got)
	}
	if got := untag(errs.String()); got != "and [REDACTED:api-key:T]\n" {
		t.Errorf("%q", got)
	}
	if len(out.whole) != 2 || !HasPlaceholder(out.whole[0]) {
		t.Errorf("%q", out.whole)
	}
	r := stdout.Report()
	if len(r.Redactions) != 1 || r.Redactions[0].Count != 2 || r.Redactions[0].Stream != "stdout" || r.Redactions[0].Tag == "" {
		t.Errorf("%+v", r.Redactions)
	}
}

func TestStreamsAtOnce(t *testing.T) {
	v := tokens(t, "{alnum:24}")
	s := testSet(t, Config{}, "DEPLOY_TOKEN="+v)
	var in strings.Builder
	for i := range uint64(200) {
		token, _ := ExpandTemplate("ghp_{alnum:36}", i)
		in.WriteString("a " + token + " b " + v + " c\n")
	}
	want := strings.Repeat("a [REDACTED:github-pat:T] b [REDACTED:env.DEPLOY_TOKEN:T] c\n", 200)
	var wait sync.WaitGroup
	for _, stream := range []Stream{Stdout, Stderr} {
		wait.Add(1)
		go func() {
			defer wait.Done()
			var out bytes.Buffer
			w := s.Writer(&out, stream)
			writeAll(w, in.String(), 13)
			if untag(out.String()) != want {
				t.Errorf("%v: %s", stream, firstDifference(untag(out.String()), want))
			}
		}()
	}
	wait.Wait()
}

func TestUTF16(t *testing.T) {
	token := tokens(t, "ghp_{alnum:36}")
	text := "id: " + token + " ä€😀 end\r\n" + strings.Repeat("plain line\r\n", 5)
	for _, mark := range []string{"", "\ufeff"} {
		for _, big := range []bool{false, true} {
			var in []byte
			for _, u := range utf16.Encode([]rune(mark + text)) {
				if big {
					in = append(in, byte(u>>8), byte(u))
				} else {
					in = append(in, byte(u), byte(u>>8))
				}
			}
			decode := func(b string) string {
				var units []uint16
				for i := 0; i+1 < len(b); i += 2 {
					u := uint16(b[i]) | uint16(b[i+1])<<8
					if big {
						u = u<<8 | u>>8
					}
					units = append(units, u)
				}
				return string(utf16.Decode(units))
			}
			want := mark + strings.Replace(text, token, "[REDACTED:github-pat:T]", 1)
			for _, size := range []int{1, 3, 17, 100000} {
				got := filterCuts(t, testSet(t, Config{}), string(in), size)
				if untag(decode(got)) != want {
					t.Errorf("mark %q big %v writes of %d: %q", mark, big, size, decode(got))
				}
			}
		}
	}
}

func TestBinary(t *testing.T) {
	v := tokens(t, "{alnum:24}")
	elf := "\x7fELF\x02\x01\x01" + strings.Repeat("\x00\x01\x02\x03", 300) + v
	random := string([]byte{0x91, 0x02, 0x1c, 0x05, 0x9f, 0x11, 0x12, 0x13, 0xff, 0x04}) + strings.Repeat("\x03\x9a", 200) + v
	tar := "file.txt" + strings.Repeat("\x00", 92) + "0000644\x00" + strings.Repeat("\x00", 500) + v
	for name, in := range map[string]string{"elf": elf, "random": random, "tar": tar} {
		for _, size := range []int{1, 50, 1 << 20} {
			var out bytes.Buffer
			s := testSet(t, Config{}, "A_TOKEN="+v)
			w := s.Writer(&out, Stdout)
			writeAll(w, in, size)
			if untag(out.String()) != strings.Replace(in, v, "[REDACTED:env.A_TOKEN:T]", 1) || !w.Report().Binary || w.Report().Redacted {
				t.Errorf("%s by %d: changed %v, report %+v", name, size, out.String() != in, w.Report())
			}
			out.Reset()
			w = testSet(t, Config{Binary: BinaryMaskKnown}, "A_TOKEN="+v).Writer(&out, Stdout)
			writeAll(w, in, size)
			if out.String() != strings.Replace(in, v, strings.Repeat("*", len(v)), 1) {
				t.Errorf("%s by %d: mask-known %q", name, size, out.String()[max(0, out.Len()-40):])
			}
			out.Reset()
			w = testSet(t, Config{Binary: BinaryBlock}, "A_TOKEN="+v).Writer(&out, Stdout)
			writeAll(w, in, size)
			if want := "[atip-exec: " + decimal(int64(len(in))) + " bytes of binary output blocked]\n"; out.String() != want {
				t.Errorf("%s by %d: blocked %q", name, size, out.String())
			}
		}
	}
	for _, text := range []string{"A=b\x00C=d\x00", "caf\xe9 \xfc\xdf Latin-1\n", "\x93\xfa\x96\x7b Shift-JIS\n", "bell \a bs \b\n"} {
		var out bytes.Buffer
		w := testSet(t, Config{Binary: BinaryBlock}).Writer(&out, Stdout)
		writeAll(w, text, 3)
		if out.String() != text || w.Report().Binary {
			t.Errorf("%q is text", text)
		}
	}
}

func writeAll(w *Writer, in string, size int) {
	for len(in) > 0 {
		n := min(size, len(in))
		io.WriteString(w, in[:n])
		in = in[n:]
	}
	w.Close()
}

func TestJSONStaysJSON(t *testing.T) {
	v := `a"b\c/` + tokens(t, "{alnum:20}")
	s := testSet(t, Config{}, "A_SECRET="+v)
	inner, _ := json.Marshal(map[string]any{"password": v, "token": tokens(t, "{alnum:30}"), "n": 12345678901234.0, "ok": true, "x": nil})
	doc, _ := json.Marshal(map[string]any{"text": string(inner), "api_key": tokens(t, "sk-ant-api03-{token:93}AA"), "list": []any{v, 1, v},
		"pem": pemText("\n", ""), v: "key", "url": "https://bob:" + tokens(t, "{alnum:14}") + "@h/"})
	out := filterAll(t, s, expandRecord(t, string(doc)))
	var back map[string]any
	if err := json.Unmarshal([]byte(out), &back); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(back) != 6 {
		t.Errorf("keys are lost: %s", out)
	}
	var in map[string]any
	if err := json.Unmarshal([]byte(back["text"].(string)), &in); err != nil {
		t.Errorf("inner: %v: %s", err, back["text"])
	}
	if in["n"] != 12345678901234.0 || in["ok"] != true {
		t.Errorf("inner values: %v", in)
	}
	if strings.Contains(out, v) || longestShared(out, v) > 6 {
		t.Errorf("%s", out)
	}
}

func TestFailingDestination(t *testing.T) {
	s := testSet(t, Config{})
	fail := errors.New("full")
	w := s.Writer(writerFunc(func([]byte) (int, error) { return 0, fail }), Stdout)
	if _, err := io.WriteString(w, "text\n"); !errors.Is(err, fail) {
		t.Errorf("%v", err)
	}
	if _, err := io.WriteString(w, "more\n"); !errors.Is(err, fail) {
		t.Errorf("%v", err)
	}
}

// TestPanic: after a failure of the engine nothing leaves.
func TestPanic(t *testing.T) {
	s := testSet(t, Config{})
	var out bytes.Buffer
	w := s.Writer(&out, Stdout)
	io.WriteString(w, "before\n")
	w.set = nil
	for range 2 {
		if n, err := io.WriteString(w, "ghp_ after\n"); n != 11 || err != nil {
			t.Errorf("%d %v: the child must be able to finish", n, err)
		}
	}
	var e *Error
	if err := w.Close(); !errors.As(err, &e) || e.FaultCode() != "E5002" {
		t.Errorf("%v", err)
	}
	if out.String() != "before\n" {
		t.Errorf("%q", out.String())
	}
}

func TestDisabled(t *testing.T) {
	token := tokens(t, "ghp_{alnum:36}\n")
	s := testSet(t, Config{Disabled: true})
	var out bytes.Buffer
	w := s.Writer(&out, Stdout)
	writeAll(w, token, 5)
	if out.String() != token || w.Report().Redacted {
		t.Errorf("%q", out.String())
	}
}

func TestConfig(t *testing.T) {
	token := tokens(t, "ghp_{alnum:36}")
	if _, err := NewSet(Config{Allow: []Allow{{SHA256: "ab"}}}, Known{}, TagKey{}); err == nil {
		t.Error("allowed without a reason")
	}
	sum := sha(token)
	s := testSet(t, Config{Allow: []Allow{{SHA256: sum, Reason: "published"}}})
	if out := filterAll(t, s, "a "+token+" b"); out != "a "+token+" b" {
		t.Errorf("%q", out)
	}
	byRule := Config{Allow: []Allow{{Rule: "github-pat", Tool: "gh", Reason: "its job"}}}
	if out := filterAll(t, testSet(t, byRule), token+"\n"); strings.Contains(out, token) {
		t.Error("a rule is let through for another tool")
	}
	byRule.Tool = "gh"
	if out := filterAll(t, testSet(t, byRule), token+"\n"); !strings.Contains(out, token) {
		t.Errorf("%q", out)
	}
	if _, err := NewSet(Config{Allow: []Allow{{Rule: "jwt", Reason: "x"}}}, Known{}, TagKey{}); err == nil {
		t.Error("a rule is let through for every tool")
	}
	s = testSet(t, Config{DisableRules: []string{"github-pat"}})
	if out := filterAll(t, s, "a "+token+" b"); out != "a "+token+" b" {
		t.Errorf("%q", out)
	}
	s = testSet(t, Config{Names: []string{"*_SIGNING_GRAIN"}})
	if out := untag(filterAll(t, s, tokens(t, "APP_SIGNING_GRAIN={alnum:20}\nGRAIN=1{alnum:20}\n"))); !strings.HasPrefix(out, "APP_SIGNING_GRAIN=[REDACTED:policy-name:T]\nGRAIN=1") {
		t.Errorf("%q", out)
	}
	if _, err := NewSet(Config{Names: []string{"a*"}}, Known{}, TagKey{}); err == nil {
		t.Error("a name without an end is accepted")
	}
	rule := Rule{ID: "x-acme", Prefix: []string{"acme_"}, Body: []Shape{{Set: "hex", Min: 16}}, Examples: []string{"acme_{hex:16}"}, Counter: []string{"acme_{hex:10}"}}
	s = testSet(t, Config{Rules: []Rule{rule}})
	if out := untag(filterAll(t, s, tokens(t, "k acme_{hex:16}\n"))); out != "k [REDACTED:x-acme:T]\n" {
		t.Errorf("%q", out)
	}
	rule.Examples = []string{"acme_{hex:3}"}
	_, err := NewSet(Config{Rules: []Rule{rule}}, Known{}, TagKey{})
	var e *Error
	if !errors.As(err, &e) || e.FaultCode() != "E1501" || e.Rule != "x-acme" {
		t.Errorf("%v", err)
	}
}
