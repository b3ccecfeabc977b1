package filter

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// TestTextBehindUTF16: a mark, or some units, at the head of a stream does not change how the
// bytes behind it are read.
func TestTextBehindUTF16(t *testing.T) {
	known, pat := tokens(t, "{alnum:24}"), tokens(t, "ghp_{alnum:36}")
	wide := "a\x00b\x00c\x00d\x00e\x00f\x00g\x00h\x00"
	for name, head := range map[string]string{"little": "\xff\xfe", "big": "\xfe\xff", "units": wide, "big units": "\x00" + wide[:15], "mark and units": "\xff\xfe" + wide} {
		for _, gap := range []string{"", "\n", "x\n"} {
			in := head + gap + "A " + known + "\n" + pat + "\nDB_PASSWORD=" + tokens(t, "{alnum:18}") + "\n\x7fELF\x00\x00\x00\x00\x00\x01 " + known
			for _, mode := range []BinaryMode{BinaryPass, BinaryMaskKnown, BinaryBlock} {
				set := testSet(t, Config{Binary: mode, NoMemory: true}, "A_TOKEN="+known)
				want := filterAll(t, set, in)
				for _, secret := range []string{known, pat, tokens(t, "{alnum:18}")} {
					if strings.Contains(want, secret) {
						t.Errorf("%s, %q, %v: %q is left in %q", name, gap, mode, secret, want)
					}
				}
				for cut := 1; cut < len(in); cut++ {
					if got := filterCuts(t, set, in, cut, len(in)); got != want {
						t.Fatalf("%s, %q, %v, cut at %d: %s", name, gap, mode, cut, firstDifference(got, want))
					}
				}
			}
		}
	}
}

// TestEdgesOfStretches: a secret in the first and the last bytes of a binary stretch.
func TestEdgesOfStretches(t *testing.T) {
	known, pat := tokens(t, "{alnum:24}"), tokens(t, "ghp_{alnum:36}")
	for _, noise := range []string{"\x00\x00\x00", "\x01\x02\x03\x04\x05\x06\x11\x12\x13\x14", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00", "\x7fELF\x02\x01\x01"} {
		for _, secret := range []string{known, pat} {
			body := strings.Repeat(noise, 40)
			for _, in := range []string{secret + body + secret, body + secret + body, body + secret + "\n" + strings.Repeat("text and text\n", 20) + secret + body} {
				for _, mode := range []BinaryMode{BinaryPass, BinaryMaskKnown, BinaryBlock} {
					set := testSet(t, Config{Binary: mode, NoMemory: true}, "A_TOKEN="+known)
					if out := filterAll(t, set, in); strings.Contains(out, secret[4:]) {
						t.Errorf("%v: %q is left behind %q", mode, secret, noise)
					}
				}
			}
		}
	}
}

// TestEndless: names, values and keys without an end hold little back, and what follows is
// read again.
func TestEndless(t *testing.T) {
	pat := tokens(t, "ghp_{alnum:36}")
	for name, unit := range map[string]string{
		"a name": "password_", "an operator": "password=====", "a quote": `password="a b `, "a header": "Authorization: Bearer a b ", "a URL": "https://a:b",
		"a key": "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat(tokens(t, "{base64:64}\n"), 40), "heads of keys": "-----BEGIN RSA PRIVATE KEY-----\n", "headers of a key": "Private-Lines: 9\nComment: x\n",
		"a sequence": "\x1b[1;1;", "a title": "\x1b]0;", "overstrikes": "a\b",
	} {
		set := testSet(t, Config{NoMemory: true})
		var out bytes.Buffer
		w := set.Writer(&out, Stdout)
		for n := 0; n < 1<<20; n += len(unit) {
			if _, err := io.WriteString(w, unit); err != nil {
				t.Fatal(err)
			}
			if h := w.Held(); h > 8<<10 {
				t.Fatalf("%s: %d bytes are held", name, h)
			}
		}
		io.WriteString(w, "\"'\n\n. \n"+pat+" end\n")
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(untag(out.String()), "[REDACTED:github-pat:T] end\n") {
			t.Errorf("%s: ends with %q", name, out.String()[max(0, out.Len()-80):])
		}
	}
}

// TestPanicAtEveryPlace: wherever the engine fails, nothing of the write that made it fail
// leaves, nor of any after it.
func TestPanicAtEveryPlace(t *testing.T) {
	secret := tokens(t, "{alnum:24}")
	for name, broken := range map[string]func(*Writer){
		"no set":      func(w *Writer) { w.set = nil },
		"no snapshot": func(w *Writer) { w.set = &Set{} },
		"a rule":      func(w *Writer) { sn := *w.set.current(); sn.rules = nil; w.set.snap.Store(&sn) },
		"a needle":    func(w *Writer) { sn := *w.set.current(); sn.needles = nil; w.set.snap.Store(&sn) },
		"a cursor":    func(w *Writer) { w.e.cursor = -1 },
	} {
		set := testSet(t, Config{}, "A_TOKEN="+secret)
		var out bytes.Buffer
		w := set.Writer(&out, Stdout)
		io.WriteString(w, "before\n")
		broken(w)
		for range 3 {
			in := "ghp_ " + secret + " after password=x\n"
			if n, err := io.WriteString(w, in); n != len(in) || err != nil {
				t.Errorf("%s: %d, %v: the child must be able to finish", name, n, err)
			}
			w.Idle()
		}
		var e *Error
		if err := w.Close(); !errors.As(err, &e) || e.FaultCode() != "E5002" {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(out.String(), secret[:8]) {
			t.Errorf("%s: %q", name, out.String())
		}
	}
}

// TestEveryEnding: no text of a name and a few marks makes the engine fail, whole, cut anywhere or
// going on after the last. Two ends of that kind were found by chance.
func TestEveryEnding(t *testing.T) {
	marks := []string{"", " ", "\t", "\n", "\r\n", "=", ":", "\"", "'", "\\", "(", ")", "[", "]", "{", "}", "<", ">", ",", ";", "|", "&", "%", "%3D", "-", "--", ".", "/", "@", "$", "#", "*", "a", "a1B2c3D4e5"}
	names := []string{"pass", "password", "PASS", "API_TOKEN", "key", "--password", "<password", "# secret", "a,token", "Authorization", "Cookie", "Digest response=", "password: a", "\"password\":\"a", "user:a", "name: password\nvalue", "://", "curl -u ", "apiVersion: v1\ndata:\n  k: "}
	most := 2
	if os.Getenv("CLIFF") == "all" {
		most = 3
	}
	s := testSet(t, Config{NoMemory: true})
	var try func(text string, left int)
	n := 0
	try = func(text string, left int) {
		cuts := []int{len(text), max(len(text)-1, 1), 1}
		if most-left > 2 { // too many texts for each cut
			cuts = cuts[n%3:][:1]
			n++
		}
		for _, cut := range cuts {
			w := s.Writer(io.Discard, Stdout)
			for rest := text; rest != ""; {
				n := min(cut, len(rest))
				io.WriteString(w, rest[:n])
				rest = rest[n:]
			}
			if err := w.Close(); err != nil {
				t.Errorf("%q by %d: %v", text, cut, err)
			}
		}
		if left > 0 {
			for _, m := range marks[1:] {
				try(text+m, left-1)
			}
		}
	}
	for _, before := range []string{"", "x\t", "| "} {
		for _, name := range names {
			try(before+name, most)
		}
	}
}
