package shims

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func dataDirs(t *testing.T) Dirs {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "agent-tools")
	return Dirs{Data: dir}
}

func TestStore(t *testing.T) {
	d, now := dataDirs(t), time.Now()
	hex := strings.Repeat("ab", 32)
	path := d.ShimPath(hex)
	if err := StoreMiss(path, Absent, "404", now, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, ok := Missed(path, now); !ok {
		t.Error("the negative answer is gone")
	}
	if _, ok := Missed(path, now.Add(2*time.Hour)); ok {
		t.Error("a negative answer outlives its time")
	}
	if _, ok := Missed(path, now.Add(-time.Hour)); ok {
		t.Error("an answer from the future counts")
	}
	raw := []byte(" {\"atip\":\"0.6\",\n\"binary\":{\"hash\":\"sha256:" + hex + "\"}} \n")
	if err := Store(path, raw, []byte("bundle"), Meta{Registry: "r", ETag: `"1"`, Expires: now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if _, ok := Missed(path, now); ok {
		t.Error("the document came, the negative answer stayed")
	}
	got, m, ok := Cached(path)
	if !ok || !bytes.Equal(got, raw) || m.ETag != `"1"` {
		t.Errorf("%q %+v %v", got, m, ok)
	}
	found, err := Lookup(Query{Digest: hex, Effective: "x"}, d)
	if err != nil || found.Document == nil || found.Provenance.Binding != "hash" {
		t.Errorf("%+v %v", found.Provenance, err)
	}
	if err := os.WriteFile(path, append(raw, ' '), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := Cached(path); ok {
		t.Error("other bytes than those that were fetched")
	}
	if err := Store(path, raw, nil, Meta{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + ".bundle"); err == nil {
		t.Error("the signature of another document stayed")
	}
}

func TestForget(t *testing.T) {
	d := dataDirs(t)
	hex, mine := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	if err := Store(d.NativePath(hex), []byte("{}"), nil, Meta{}); err != nil {
		t.Fatal(err)
	}
	if err := StoreMiss(d.ShimPath(hex), Absent, "404", time.Now(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(d.ShimPath(mine), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	removed, err := Forget(d, hex)
	if err != nil || len(removed) != 3 {
		t.Errorf("%q %v", removed, err)
	}
	if removed, err := Forget(d, mine); err != nil || len(removed) != 0 {
		t.Errorf("what a person wrote is removed: %q %v", removed, err)
	}
	if removed, _ := Forget(d, "../../x"); removed != nil {
		t.Error("a digest that is a path")
	}
}

func TestIndexKeepsWhatOthersWrite(t *testing.T) {
	d := dataDirs(t)
	const before = `{"version":"2","x-other":{"a":[1,2]},"tools":{"old":{"path":"/bin/old","hash":"sha256:1","source":"shim"}}}`
	if err := WriteFile(d.indexPath(), []byte(before)); err != nil {
		t.Fatal(err)
	}
	if err := UpdateIndex(d, "1", func(x *Index) { x.Tools["new"] = IndexEntry{Path: "/bin/new", Hash: "sha256:2"} }); err != nil {
		t.Fatal(err)
	}
	x, err := ReadIndex(d)
	if err != nil || len(x.Tools) != 2 || string(x.rest["x-other"]) == "" {
		t.Errorf("%+v %v", x, err)
	}
	for _, bad := range []string{`{"version":"3","tools":{}}`, `[]`, `{"tools":{}}`, `{"version":"2","tools":[]}`} {
		if err := WriteFile(d.indexPath(), []byte(bad)); err != nil {
			t.Fatal(err)
		}
		if err := UpdateIndex(d, "1", func(*Index) { t.Errorf("%s is changed", bad) }); err == nil {
			t.Errorf("%s is accepted", bad)
		}
		if raw, _ := os.ReadFile(d.indexPath()); string(raw) != bad {
			t.Errorf("%s was overwritten", bad)
		}
	}
	if err := WriteFile(d.indexPath(), []byte(`{"version":"1","tools":{"a":{"path":"/bin/a"}}}`)); err != nil {
		t.Fatal(err)
	}
	if x, err := ReadIndex(d); err != nil || len(x.Tools) != 0 {
		t.Errorf("%+v %v", x, err)
	}
}

// TestIndexConcurrently holds that writers add up and that a reader, who takes no
// lock, never sees half of an index.
func TestIndexConcurrently(t *testing.T) {
	d := dataDirs(t)
	const writers, each = 4, 10
	stop := make(chan struct{})
	var reader, wg sync.WaitGroup
	reader.Add(1)
	go func() {
		defer reader.Done()
		for {
			select {
			case <-stop:
				return
			default:
			}
			raw, err := os.ReadFile(d.indexPath())
			if err == nil && !json.Valid(raw) {
				t.Errorf("half an index: %q", raw)
				return
			}
		}
	}()
	for w := range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range each {
				if err := UpdateIndex(d, "1", func(x *Index) { x.Tools[fmt.Sprint(w, "-", i)] = IndexEntry{Path: "/x"} }); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	close(stop)
	reader.Wait()
	x, err := ReadIndex(d)
	if err != nil || len(x.Tools) != writers*each {
		t.Errorf("%d tools, %v", len(x.Tools), err)
	}
	left, _ := filepath.Glob(d.Data + "/.new-*")
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
