package filter

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// oracle finds known values and prefix tokens the slow way: every needle and
// every rule at every offset of the whole text, no index, no state.
func oracle(s *Set, in string) []span {
	snap := s.snap.Load()
	v := []byte(in)
	var out []span
	for i := range v {
		for k := range snap.needles {
			if snap.needles[k].lead != 0 { // counts behind an escape sequence only
				continue
			}
			r := matchKnown(v, i, &snap.needles[k], &snap.values[snap.needles[k].value], true)
			if r.outcome == found {
				out = append(out, span{i, r.end})
			}
		}
		for _, p := range &builtinPrefixes {
			r := &builtinRules[p.rule]
			if strings.HasPrefix(in[i:], p.text) && r.fits(v, i) {
				if m := matchRule(v, i, len(p.text), r, true); m.outcome == found {
					out = append(out, span{i, m.end})
				}
			}
		}
	}
	return out
}

func FuzzWriter(f *testing.F) {
	secret := tokens(f, "{alnum:24}")
	second := "p4ss w0rd/" + tokens(f, "{token:16}") + "&\"'\nx"
	for _, r := range records {
		f.Add([]byte(expandRecord(f, r.in)), uint16(7), uint8(3))
	}
	for _, text := range corpusTexts(f) {
		f.Add([]byte(text[:min(len(text), 1<<11)]), uint16(11), uint8(2))
	}
	// Found by the fuzzer. Literal tokens do not belong into files.
	f.Add([]byte("\x16\x16\x16\x16"+tokens(f, "ghp_{alnum:36}")), uint16(92), uint8('_'))
	f.Add([]byte("+a\n+"+armourHead+"OPENSSH PRIVATE KEY-----\n+"+tokens(f, "{base64:48}")+"\xff\x7f\xff"+tokens(f, "{base64:16}")+"\n+"), uint16(7), uint8(3))
	f.Add([]byte("x "+secret+" y "+second), uint16(3), uint8(0))
	f.Add([]byte("a\xf7\xf6\xf7b\xf8\xf7\xfaAPI_KEY=\xf9\xfb\xf7\n\xf5\xf7"), uint16(9), uint8(4))
	for _, r := range formRows {
		for _, text := range append(r.yes, r.no...) {
			f.Add([]byte(expandForm(f, text, 3)), uint16(5), uint8(1))
		}
	}
	f.Add([]byte("TOKEN=\xf7%"), uint16(114), uint8(3))
	f.Add([]byte("password=\"ab\\\"cd"), uint16(1), uint8(0))
	f.Add([]byte("a\x1b[3\x08\x08\x1b]8;;http://a:b@c\x07"), uint16(1), uint8(0))
	known, err := Collect(Sources{Env: []string{"A_TOKEN=" + secret, "B_SECRET=" + second}})
	if err != nil {
		f.Fatal(err)
	}
	s, err := NewSet(Config{NoMemory: true}, known, TagKey{9})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte, cut uint16, rest uint8) {
		if len(in) > 1<<11 {
			return
		}
		// Some bytes stand for what chance seldom finds.
		in = []byte(strings.NewReplacer("\xf5", "\x1b[31m", "\xf6", "\x00\x00\x00", "\xf7", secret, "\xf8", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
			"\xf9", secret[:11]+"\x1b[1m"+secret[11:], "\xfa", "\nsome line of text behind a picture\nand one more\n", "\xfb", "\x01\x02\x03\x04\x05\x06", "\xfc", "\nAPI_TOKEN=", "\xfd", "{\"value\":\"", "\xfe", "</td><td>").Replace(string(in)))
		text := string(in)
		want := filterAll(t, s, text)
		// Cut anywhere, the output is the same.
		if len(in) > 0 {
			c := 1 + int(cut)%len(in)
			if got := filterCuts(t, s, text, c, 1+int(rest)); got != want {
				t.Fatalf("cut at %d, then by %d: %s", c, 1+int(rest), firstDifference(got, want))
			}
		}
		var out bytes.Buffer
		w := s.Writer(&out, Stdout)
		for i := 0; i < len(in); i += 100 {
			w.Write(in[i:min(i+100, len(in))])
			if h := w.Held(); h > 16<<10 {
				t.Fatalf("%d bytes held", h)
			}
			// At pauses more may leave, but never the body of a value.
			w.Idle()
		}
		w.Close()
		if w.e.view.wide != narrow {
			return
		}
		if strings.Contains(out.String(), secret) {
			t.Fatalf("with pauses a known value is left in %q", out.String())
		}
		// What the slow matcher finds is not in the output.
		if !bytes.ContainsAny(in, "\x1b\b\x0e\x0f") {
			for _, sp := range oracle(s, text) {
				if sp.to-sp.from >= 12 && strings.Contains(want, text[sp.from:sp.to]) && !strings.Contains(want, "[REDACTED") {
					t.Fatalf("%q is left in %q", text[sp.from:sp.to], want)
				}
			}
		}
		if strings.Contains(want, secret) {
			t.Fatalf("a known value is left in %q", want)
		}
		if json.Valid(in) && bytes.ContainsAny(in, "{[") && !json.Valid([]byte(want)) {
			t.Fatalf("JSON broke:\nin  %s\nout %s", in, want)
		}
	})
}
