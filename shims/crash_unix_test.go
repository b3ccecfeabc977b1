//go:build unix

package shims

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test program be the writer that TestKilledWriters kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("ATIP_TEST_WRITER"); dir != "" {
		writer(Dirs{Data: dir})
		return
	}
	os.Exit(m.Run())
}

func crashDoc(n int) []byte {
	return fmt.Appendf(nil, `{"atip":"0.6","binary":{"hash":"sha256:%s","name":"x","version":"%d"},"description":"%s"}`, hexA, n, strings.Repeat("d", 60_000))
}

// writer changes everything that is kept until it is killed.
func writer(d Dirs) {
	for n := 0; ; n++ {
		if err := UpdateIndex(d, "1", func(x *Index) {
			x.Tools[fmt.Sprint("tool", len(x.Tools))] = IndexEntry{Path: strings.Repeat("/x", 2000)}
		}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if err := Store(d.ShimPath(hexA), crashDoc(n), []byte("bundle"), Meta{Registry: "r", Expires: time.Now().Add(time.Hour)}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

// TestKilledWriters kills writers at any point: what was there before or what was meant
// to be there is there, whole, and the next writer goes on.
func TestKilledWriters(t *testing.T) {
	d := dataDirs(t)
	if err := UpdateIndex(d, "1", func(x *Index) { x.Tools["first"] = IndexEntry{Path: "/first"} }); err != nil {
		t.Fatal(err)
	}
	tools := 1
	for round := range 20 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ATIP_TEST_WRITER="+d.Data)
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The first ones are given time to write something at all.
		for waited := time.Duration(0); waited < 10*time.Second; waited += 5 * time.Millisecond {
			if x, err := ReadIndex(d); err != nil || len(x.Tools) > tools {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Duration(round*7919%1000) * 3 * time.Microsecond)
		cmd.Process.Kill()
		cmd.Wait()
		if out.Len() > 0 {
			t.Fatalf("a writer failed: %s", out.String())
		}
		x, err := ReadIndex(d)
		if err != nil || len(x.Tools) < tools || x.Tools["first"].Path != "/first" {
			t.Fatalf("round %d: %d tools, %d before, %v", round, len(x.Tools), tools, err)
		}
		tools = len(x.Tools)
		raw, err := os.ReadFile(d.ShimPath(hexA))
		if err == nil && !json.Valid(raw) {
			t.Fatalf("round %d: half a document", round)
		}
		// Whether document and side file belong together or not, nothing is an error.
		if _, err := Lookup(Query{Digest: hexA, Effective: "x"}, d); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	if tools < 20 {
		t.Errorf("only %d tools were written", tools)
	}
	// What the killed ones left is swept later, and not while it could still be wanted.
	left := func() int {
		a, _ := filepath.Glob(d.Data + "/.new-*")
		b, _ := filepath.Glob(d.Data + "/shims/sha256/.new-*")
		return len(a) + len(b)
	}
	if err := os.WriteFile(d.Data+"/.new-1", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(d, time.Now()); err != nil || left() == 0 {
		t.Errorf("%d left, %v", left(), err)
	}
	if err := Sweep(d, time.Now().Add(2*time.Hour)); err != nil || left() != 0 {
		t.Errorf("%d left, %v", left(), err)
	}
	if _, err := ReadIndex(d); err != nil {
		t.Error(err)
	}
}
