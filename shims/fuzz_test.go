package shims

import (
	"errors"
	"os"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

// Whatever stands in a user's by-name file, it never makes a builtin tool look
// safer, and a file that cannot be used stops the run with a code.
func FuzzUserShim(f *testing.F) {
	for _, s := range []string{
		doc("rm", "org", "", false), doc("rm", "vendor", "", true), doc("rm", "inferred", "", false), `{`, `[]`, "\ufeff{}", `{"atip":"1.0"}`,
		`{"atip":"0.6","name":"rm","version":"1","description":"x","x-atip-effects":{"v":1,"base":{},"narrow":[{"id":"a","if":{"anyOption":["-f"]},"effects":{}}]},"effects":{"destructive":false}}`,
		`// c` + "\n" + doc("rm", "", hexA, false), `{"atip":"0.6","name":"rm","binary":{"hash":"sha256:` + hexB + `"}}`,
	} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	d := Dirs{Data: dir}
	if err := os.Mkdir(dir+"/shims", 0o755); err != nil {
		f.Fatal(err)
	}
	argv := []string{"rm", "-rf", "x"}
	q := Query{Digest: hexA, Effective: "rm", Believed: true}
	bare, err := Lookup(q, Dirs{})
	if err != nil {
		f.Fatal(err)
	}
	floor := bare.Resolve(argv, atip.ResolveOptions{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := os.WriteFile(dir+"/shims/rm.json", raw, 0o644); err != nil {
			t.Fatal(err)
		}
		found, err := Lookup(q, d)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Code == "" || e.File == "" {
				t.Errorf("%v is not coded", err)
			}
			return
		}
		got := found.Resolve(argv, atip.ResolveOptions{})
		for i, f := range floor.Effects {
			if e := atip.Effect(i); f.Value == e.Dangerous() && got.Effects[i].Value != f.Value {
				t.Errorf("%s fell from %s to %s", e, f.Value, got.Effects[i].Value)
			}
		}
	})
}
