package record

import (
	"encoding/json"
	"testing"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/marshal"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/sandbox"
)

// anyHome is this process on a machine whose administrator lets HOME name any directory.
func anyHome() caller.Machine {
	m := caller.Here()
	m.Homes = []string{"/"}
	return m
}

func plain(text string) string { return text }

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
		p, err := plan.Make(plan.Invocation{Argv: argv}, anyHome())
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"run", "refused"} {
			same(t, Of(p, kind, plain, nil))
		}
		same(t, map[string]any{"filter": Filter(nil, nil, nil), "tree": (*sandbox.Tree)(nil), "protected": (&sandbox.Settlement{}).Receipt(), "sandbox": p.Setup.Receipt()})
		p.Close()
	}
}

func BenchmarkEncodeRecord(b *testing.B) {
	p, err := plan.Make(plan.Invocation{Argv: []string{"true"}}, anyHome())
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	rec := Of(p, "run", plain, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := marshal.JSON(rec); err != nil {
			b.Fatal(err)
		}
	}
}
