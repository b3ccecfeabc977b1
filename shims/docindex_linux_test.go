package shims

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/atip"
)

// largeDocument is the metadata of a tool with thousands of commands in groups, bound
// to hexA.
func largeDocument(groups, commands int, source string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"atip":"0.6","name":"big","version":"1","description":"Big","trust":{"source":%q},"binary":{"hash":"sha256:%s","name":"big","version":"1"},
		"options":[{"name":"root","flags":["-C","--root"],"type":"directory","description":"r"}],"commands":{`, source, hexA)
	for g := range groups {
		if g > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"group%d":{"description":"A group","commands":{`, g)
		for c := range commands {
			if c > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"do%d":{"description":"Does it","aliases":["d%d"],"options":[{"name":"only%d","flags":["--only-%d-%d"],"type":"boolean","description":"o"},{"name":"to","flags":["-t","--to"],"type":"string","description":"where to"}],
				"arguments":[{"name":"x","type":"string","description":"x"}],"effects":{"network":false,"destructive":%v,"filesystem":{"read":true,"write":false,"delete":false}}}`, c, c, c, g, c, c%7 == 0)
		}
		b.WriteString("}}")
	}
	b.WriteString("}}")
	return b.String()
}

var bigCalls = [][]string{
	{"big", "group3", "do5", "x"}, {"big", "-C", "d", "group3", "d7", "x"}, {"big", "--only-2-3", "group2", "do3", "x"}, {"big", "--no-such", "group1", "do0", "x"},
	{"big", "-t", "y", "group1", "do1", "x"}, {"big", "group1", "--nope", "do1", "x"}, {"big", "group1", "-t", "y", "do1", "x"}, {"big", "nosuch", "do1"}, {"big", "group1", "nosuch"}, {"big"}, {"big", "group2"}, {"other", "group1", "do1", "x"},
}

func TestDocumentIndex(t *testing.T) {
	w := newWorld(t)
	w.d.Index = t.TempDir() + "/index"
	path := w.d.Data + "/tools/sha256-" + hexA + ".json"
	text := largeDocument(30, 200, "native")
	if len(text) < 2<<20 || len(text) > 4<<20 {
		t.Fatalf("%d bytes", len(text))
	}
	w.fetched(path, text, "2099-01-01T00:00:00Z")
	q := Query{Digest: hexA, Effective: "big", Invoked: "big", Believed: true}
	look := func(d Dirs) Found {
		t.Helper()
		f, err := Lookup(q, d)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	same := func(when string, f, want Found) {
		t.Helper()
		if !reflect.DeepEqual(f.Provenance, want.Provenance) {
			t.Errorf("%s: %+v, want %+v", when, f.Provenance, want.Provenance)
		}
		for _, argv := range bigCalls {
			if got, want := f.Resolve(argv, atip.ResolveOptions{}), want.Resolve(argv, atip.ResolveOptions{}); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %q:\n%+v\n%+v", when, argv, got, want)
			}
		}
	}
	unindexed := w.d
	unindexed.Index = ""
	whole := look(unindexed)
	index := docIndexPath(w.d.Index, path)

	same("fresh", look(w.d), whole)
	if _, err := os.Stat(index); err == nil {
		t.Error("a file that has just changed is indexed: it could change again unseen")
	}
	settle(t, path)
	same("first", look(w.d), whole)
	if _, err := os.Stat(index); err != nil {
		t.Fatal(err)
	}
	warm := look(w.d)
	same("warm", warm, whole)

	// The document is not read, and of its index a few blocks.
	n := testing.AllocsPerRun(3, func() { look(w.d).Resolve([]string{"big", "--no-such", "group1", "do0", "x"}, atip.ResolveOptions{}) })
	if n > 200 {
		t.Errorf("%v allocations", n)
	}
	if bytes := bytesPerRun(func() { look(w.d).Resolve([]string{"big", "--no-such", "group1", "do0", "x"}, atip.ResolveOptions{}) }); bytes > 256<<10 {
		t.Errorf("%d bytes for one call", bytes)
	}

	// What is warm shows the whole document to those who list it.
	if a, b := len(warm.Document.Commands(atip.Provenance{})), len(whole.Document.Commands(atip.Provenance{})); a != b || a < 6000 {
		t.Errorf("%d commands, want %d", a, b)
	}

	// A damaged index is not used, or makes the call unknown; it never lowers danger.
	good, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	argv := []string{"big", "group1", "do0", "x"} // destructive
	for at := 0; at < len(good); at += 1 + len(good)/100 {
		bent := append([]byte(nil), good...)
		bent[at] ^= 0x5a
		if err := os.WriteFile(index, bent, 0o600); err != nil {
			t.Fatal(err)
		}
		look(w.d).Resolve(argv, atip.ResolveOptions{})
	}
	if err := os.WriteFile(index, good[:len(good)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	same("half an index", look(w.d), whole)
	if err := os.WriteFile(index, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(index, 0o666); err != nil {
		t.Fatal(err)
	}
	same("an index that anybody could write", look(w.d), whole)
	if err := os.Chmod(index, 0o600); err != nil {
		t.Fatal(err)
	}

	// Another text under the same size and times is seen by its ctime.
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.ReplaceAll(text, `"destructive":true`, `"destructive":null`)
	other = strings.Replace(other, "A group", strings.Repeat("g", 7+len(text)-len(other)), 1)
	w.fetched(path, other, "2099-01-01T00:00:00Z")
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	same("changed", look(w.d), look(unindexed))
	if v := look(w.d).Resolve(argv, atip.ResolveOptions{}).Effects[atip.Destructive].Value; v != atip.Unknown {
		t.Errorf("changed: destructive %s", v)
	}
}

// settle waits until the file's ctime is old enough to be told from a later one.
func settle(t *testing.T, path string) {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(time.Unix(0, st.Ctim.Nano()).Add(indexSettle + 50*time.Millisecond)))
}

func bytesPerRun(f func()) int64 {
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f()
		}
	})
	return r.AllocedBytesPerOp()
}

// Comments stand in documents that people write; the index skips them as Parse does.
func TestDocumentIndexWithComments(t *testing.T) {
	w := newWorld(t)
	w.d.Index = t.TempDir() + "/index"
	path := w.d.Config + "/overrides/sha256/" + hexA + ".json"
	text := strings.ReplaceAll(largeDocument(5, 10, "org"), `"commands":{`, "\"commands\": /* } */ { // {\"\n")
	w.put(path, text)
	settle(t, path)
	q := Query{Digest: hexA, Effective: "big", Invoked: "big"}
	var first Found
	for i := range 2 {
		f, err := Lookup(q, w.d)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = f
			if _, err := os.Stat(docIndexPath(w.d.Index, path)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, argv := range bigCalls {
			if got, want := f.Resolve(argv, atip.ResolveOptions{}), first.Resolve(argv, atip.ResolveOptions{}); !reflect.DeepEqual(got, want) {
				t.Errorf("%q:\n%+v\n%+v", argv, got, want)
			}
		}
		sum := sha256.Sum256([]byte(text))
		if f.Provenance.Digest != hex.EncodeToString(sum[:]) {
			t.Errorf("digest %s", f.Provenance.Digest)
		}
	}
}

func BenchmarkLargeDocument(b *testing.B) {
	d := Dirs{Data: b.TempDir(), Config: "/nonexistent/c", Managed: "/nonexistent/m"}
	d.Index = d.Data + "/index"
	path := d.Data + "/shims/sha256/" + hexA + ".json"
	if err := WriteFile(path, []byte(largeDocument(38, 250, "user"))); err != nil {
		b.Fatal(err)
	}
	time.Sleep(indexSettle + 50*time.Millisecond)
	q := Query{Digest: hexA, Effective: "big", Invoked: "big", Believed: true}
	if _, err := Lookup(q, d); err != nil { // the first one keeps the index
		b.Fatal(err)
	}
	for _, argv := range [][]string{{"big", "group30", "do200", "x"}, {"big", "--no-such", "group30", "do200", "x"}} {
		b.Run(argv[1], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f, err := Lookup(q, d)
				if err != nil {
					b.Fatal(err)
				}
				if c := f.Resolve(argv, atip.ResolveOptions{}); c.Path[0] != "group30" {
					b.Fatal(c.Path)
				}
			}
		})
	}
}
