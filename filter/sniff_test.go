package filter

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mixed is text with binary stretches of every kind, and a secret at each border.
func mixedStream(t testing.TB, known string) string {
	pw := tokens(t, "{alnum:18}")
	pat := tokens(t, "ghp_{alnum:36}")
	rng := rand.New(rand.NewSource(3))
	noise := make([]byte, 700)
	for i := range noise {
		noise[i] = byte(rng.Intn(256))
	}
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00" + string(noise) + "IEND\xaeB`\x82"
	return "DB_PASSWORD=" + pw + "\n" + png + pat + "\nDB_PASSWORD=" + pw + "x\nPATH=/usr/bin\n" + known + "\x00\x00\x00" + known + "\x01\x02\x03\x04\x05\x06" +
		string(noise[:200]) + known + "\n" + "API_SECRET=" + pw + "y\n" + strings.Repeat("plain text of a log, line after line\n", 4) + "API_SECRET=" + pw + "z\n" +
		"\x7fELF" + strings.Repeat("\x00\x03", 40) + pat + "\x00\x00" + known
}

func TestStretches(t *testing.T) {
	known := tokens(t, "{alnum:24}")
	in := mixedStream(t, known)
	pw := tokens(t, "{alnum:18}")
	for _, mode := range []BinaryMode{BinaryPass, BinaryMaskKnown, BinaryBlock} {
		set := func() *Set { return testSet(t, Config{Binary: mode, NoMemory: true}, "A_TOKEN="+known) }
		want := filterAll(t, set(), in)
		for _, secret := range []string{known, pw, "ghp_"} {
			if strings.Contains(want, secret) {
				t.Errorf("%v: %q is left in %q", mode, secret, want)
			}
		}
		for cut := 1; cut < len(in); cut++ {
			if got := filterCuts(t, set(), in, cut, len(in)); got != want {
				t.Fatalf("%v cut at %d: %s", mode, cut, firstDifference(got, want))
			}
		}
		for _, size := range []int{1, 7, 100} {
			if got := filterCuts(t, set(), in, size); got != want {
				t.Fatalf("%v in writes of %d: %s", mode, size, firstDifference(got, want))
			}
		}
		if mode == BinaryMaskKnown && strings.Count(want, "*") < len(known) {
			t.Errorf("no asterisks in %q", want)
		}
	}
}

// TestBinaryWithoutSecrets: every byte of what holds no secret stays, whatever the mode but
// block.
func TestBinaryWithoutSecrets(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(rng.Intn(256))
	}
	samples := map[string][]byte{"noise": noise}
	var names []string
	for _, tool := range []string{"go", "gofmt"} {
		if path, err := exec.LookPath(tool); err == nil {
			names = append(names, path)
		}
	}
	for _, glob := range []string{"/usr/bin/*", "/usr/lib/*/*.so*"} {
		found, _ := filepath.Glob(glob)
		for i := 0; i < len(found); i += 1 + len(found)/12 {
			names = append(names, found[i])
		}
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil || len(data) == 0 {
			continue
		}
		data = data[:min(len(data), 4<<20)]
		// libgnutls carries private keys to test itself, gpg-agent a prompt with a passphrase in it.
		if !bytes.Contains(data, []byte("PRIVATE KEY-----")) && !bytes.Contains(data, []byte("passphrase")) && !bytes.Contains(data, []byte("password")) {
			samples[name] = data
		}
	}
	if len(samples) < 8 {
		t.Fatalf("only %d samples", len(samples))
	}
	for name, data := range samples {
		for _, mode := range []BinaryMode{BinaryPass, BinaryMaskKnown} {
			var out bytes.Buffer
			w := testSet(t, Config{Binary: mode}).Writer(&out, Stdout)
			if _, err := w.Write(data); err != nil {
				t.Fatal(err)
			}
			w.Close()
			if !bytes.Equal(out.Bytes(), data) {
				t.Errorf("%s changed under %v: %+v", name, mode, w.Report().Redactions)
			}
			if name == "noise" && (!w.Report().Binary || w.Report().BinaryBytes < 1<<19) {
				t.Errorf("%s: %+v", name, w.Report())
			}
		}
	}
}

func TestPrintable(t *testing.T) {
	for c := range 256 {
		for at := range 8 {
			b := []byte("textline")
			b[at] = byte(c)
			want := c >= 0x20 && c < 0x7f
			if got := printable(binary.LittleEndian.Uint64(b)); got != want {
				t.Fatalf("%#x at %d: %v", c, at, got)
			}
		}
	}
}

// TestAlternating: text and binary a million times cost what text costs, and memory stays
// bounded.
func TestAlternating(t *testing.T) {
	part := []byte(strings.Repeat("some text\n\x00\x00\x00\x01\x02 x\n", 1000))
	for _, mode := range []BinaryMode{BinaryPass, BinaryMaskKnown, BinaryBlock} {
		w := testSet(t, Config{Binary: mode}).Writer(io.Discard, Stdout)
		from := time.Now()
		for range 1000 {
			if _, err := w.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
		if d := time.Since(from); d > 20*time.Second {
			t.Errorf("%v: %v for a million changes", mode, d)
		}
		if n := cap(w.e.view.raw) + cap(w.e.view.vis) + cap(w.pend) + 16*cap(w.sniff.spans) + 16*cap(w.e.view.segs); n > 4<<20 {
			t.Errorf("%v: %d bytes of buffers", mode, n)
		}
	}
}
