package filter

import (
	"bytes"
	"fmt"
	"io"
	"math/rand"
	"os"
	"strings"
	"testing"
)

// buildLog makes a log as compilers, package managers and test runners write it:
// paths, digests, versions, durations, progress, some colour.
func buildLog(size int, colour bool) []byte {
	rng := rand.New(rand.NewSource(42))
	words := strings.Fields(`internal server client token parser keyring auth pass build config module signal session author
		memory process thread buffer socket packet stream reader writer index table column schema query cache store engine
		runtime compiler linker assembler object library header source target release debug profile trace metric logger event
		handler router request response header body encode decode path design registry credential`)
	w := func() string { return words[rng.Intn(len(words))] }
	hex := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "0123456789abcdef"[rng.Intn(16)]
		}
		return string(b)
	}
	var b bytes.Buffer
	for b.Len() < size {
		switch rng.Intn(14) {
		case 0:
			fmt.Fprintf(&b, "gcc -O2 -Wall -Iinclude/%s -c src/%s/%s_%s.c -o build/%s/%s.o\n", w(), w(), w(), w(), w(), w())
		case 1:
			fmt.Fprintf(&b, "go: downloading github.com/%s/%s v%d.%d.%d\n", w(), w(), rng.Intn(9), rng.Intn(30), rng.Intn(9))
		case 2:
			fmt.Fprintf(&b, "ok  \tgithub.com/example/%s/%s\t%d.%03ds\n", w(), w(), rng.Intn(9), rng.Intn(1000))
		case 3:
			fmt.Fprintf(&b, "npm http fetch GET 200 https://registry.npmjs.org/%s-%s %dms (cache hit)\n", w(), w(), rng.Intn(900))
		case 4:
			fmt.Fprintf(&b, "commit %s\nAuthor: %s <%s@example.org>\nDate:   Mon Jan 2 15:04:05 2006 +0000\n\n    %s: fix the %s of the %s\n\n", hex(40), w(), w(), w(), w(), w())
		case 5:
			fmt.Fprintf(&b, "   Compiling %s-%s v%d.%d.%d (/home/user/src/%s)\n", w(), w(), rng.Intn(3), rng.Intn(30), rng.Intn(9), w())
		case 6:
			fmt.Fprintf(&b, " ---> %s\nStep %d/%d : RUN make -C %s install\n", hex(12), rng.Intn(20), 20, w())
		case 7:
			fmt.Fprintf(&b, "--- PASS: Test%s/%s_%s (%d.%02ds)\n", w(), w(), w(), rng.Intn(3), rng.Intn(100))
		case 8:
			fmt.Fprintf(&b, "src/%s/%s.go:%d:%d: undefined: %s in call to %s.%s\n", w(), w(), rng.Intn(900), rng.Intn(80), w(), w(), w())
		case 9:
			fmt.Fprintf(&b, "2024-05-%02dT10:%02d:%02d.%03dZ INFO  [%s] request id=%s status=200 duration=%dms path=/api/v1/%s\n", 1+rng.Intn(28), rng.Intn(60), rng.Intn(60), rng.Intn(1000), w(), hex(16), rng.Intn(900), w())
		case 10:
			fmt.Fprintf(&b, "Get:%d http://archive.ubuntu.com/ubuntu jammy/main amd64 lib%s-dev amd64 %d.%d-1 [%d kB]\n", rng.Intn(200), w(), rng.Intn(9), rng.Intn(30), rng.Intn(9000))
		case 11:
			fmt.Fprintf(&b, "-rw-r--r-- 1 root root %8d Jan  2 15:04 %s-%s.txt\n", rng.Intn(9999999), w(), w())
		case 12:
			fmt.Fprintf(&b, "%s %s sha256:%s\n", w(), w(), hex(64))
		case 13:
			if colour {
				fmt.Fprintf(&b, "\x1b[32m✓\x1b[0m %s \x1b[2m(%d ms)\x1b[0m\n", w(), rng.Intn(500))
			} else {
				fmt.Fprintf(&b, "  %s %s %s the %s and %s of %s in %s\n", w(), w(), w(), w(), w(), w(), w())
			}
		}
	}
	return b.Bytes()[:size]
}

func benchWriter(b *testing.B, log []byte, env ...string) {
	s := testSet(b, Config{}, env...)
	if got := filterAll(b, s, string(log)); got != string(log) {
		b.Fatalf("the log is not clean: %s", firstDifference(got, string(log)))
	}
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		w := s.Writer(io.Discard, Stdout)
		for rest := log; len(rest) > 0; {
			n := min(len(rest), piece)
			w.Write(rest[:n])
			rest = rest[n:]
		}
		w.Close()
	}
}

func someEnv(n int) []string {
	var env []string
	for i := range n {
		v, _ := ExpandTemplate("{alnum:24}", uint64(i+1))
		env = append(env, fmt.Sprintf("DEPLOY%d_TOKEN=%s", i, v))
	}
	return env
}

func BenchmarkWriterBuildLog(b *testing.B) { benchWriter(b, buildLog(8<<20, false), someEnv(5)...) }
func BenchmarkWriterBuildLogColour(b *testing.B) {
	benchWriter(b, buildLog(8<<20, true), someEnv(5)...)
}
func BenchmarkWriterManyValues(b *testing.B) {
	benchWriter(b, buildLog(8<<20, false), someEnv(1000)...)
}

// BenchmarkPipeCopy is the floor: the same log through a pipe in 64 KiB pieces.
func BenchmarkPipeCopy(b *testing.B) {
	log := buildLog(8<<20, false)
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		r, w, err := os.Pipe()
		if err != nil {
			b.Fatal(err)
		}
		go func() {
			w.Write(log)
			w.Close()
		}()
		buf := make([]byte, piece)
		for {
			n, err := r.Read(buf)
			if err != nil {
				break
			}
			io.Discard.Write(buf[:n])
		}
		r.Close()
	}
}

func BenchmarkCollectNewSet(b *testing.B) {
	env := append(someEnv(20), "PATH=/usr/bin:/bin", "HOME=/root", "LANG=C.UTF-8", "TERM=xterm", "SHELL=/bin/sh")
	b.ReportAllocs()
	for b.Loop() {
		known, _ := Collect(Sources{Env: env})
		if _, err := NewSet(Config{}, known, TagKey{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewSetEmpty(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewSet(Config{}, Known{}, TagKey{}); err != nil {
			b.Fatal(err)
		}
	}
}
