package run

import (
	"encoding/json"
	"testing"

	"github.com/atip-dev/atip-exec/internal/marshal"
	"github.com/atip-dev/atip-exec/sandbox"
)

// same demands that the encoder of records writes what json.Marshal does.
func same(t *testing.T, v any) {
	t.Helper()
	want, werr := json.Marshal(v)
	got, err := marshal.JSON(v)
	if (err == nil) != (werr == nil) {
		t.Errorf("%#v: error %v, json says %v", v, err, werr)
	} else if err == nil && string(got) != string(want) {
		t.Errorf("%#v\n got %s\nwant %s", v, got, want)
	}
}

// TestRecordEncodes compares the records that are really written.
func TestRecordEncodes(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	for _, argv := range [][]string{{"true"}, {"git", "status"}, {"rm", "-rf", "x"}} {
		p, err := MakePlan(Invocation{Argv: argv}, here())
		if err != nil {
			t.Fatal(err)
		}
		x := &execution{plan: p}
		for _, kind := range []string{"run", "refused"} {
			same(t, x.describe(kind))
		}
		same(t, map[string]any{"filter": x.filterRecord(), "tree": (*sandbox.Tree)(nil), "protected": x.protected.Receipt(), "sandbox": p.Setup.Receipt()})
		p.Close()
	}
}

func BenchmarkEncodeRecord(b *testing.B) {
	p, err := MakePlan(Invocation{Argv: []string{"true"}}, here())
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	rec := (&execution{plan: p}).describe("run")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := marshal.JSON(rec); err != nil {
			b.Fatal(err)
		}
	}
}
