//go:build unix

package sigstore_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/atip-dev/atip-exec/trust/request"
)

// BenchmarkHelper is one start of the verifier as it is shipped, for one subject and for as many
// as one start takes, with a root of its own and that of Sigstore, which it parses. CPU-ms and MB are what the
// kernel counted for the process.
func BenchmarkHelper(b *testing.B) {
	if err := build(); err != nil {
		b.Fatal(err)
	}
	d := deploy(b)
	data := []byte("the tool")
	bundle := d.message(d.certify(identity{san: workflow, issuer: actions, source: source}), data)
	for _, n := range []int{1, request.MaxLines} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			var list []request.Request
			for i := range n {
				r := question(d, data, keyless(nil), bundle)
				r.ID, r.Subject.Name = strconv.Itoa(i+1), "tool"+strconv.Itoa(i)
				r.Roots = append(r.Roots, request.Root{Name: "sigstore", Managed: true})
				list = append(list, r)
			}
			input, err := request.Encode(list)
			if err != nil {
				b.Fatal(err)
			}
			var cpu int64
			var peak int64
			for b.Loop() {
				cmd := exec.Command(filepath.Join(bin, "atip-verify"), "verify", "--request", "-")
				cmd.Dir, cmd.Env, cmd.Stdin = "/", []string{"GOMEMLIMIT=256MiB"}, bytes.NewReader(input)
				out, err := cmd.Output()
				if err != nil || bytes.Count(out, []byte(`"level":"VERIFIED"`)) != n {
					b.Fatalf("%v: %s", err, out)
				}
				u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
				cpu += u.Utime.Nano() + u.Stime.Nano()
				peak = max(peak, u.Maxrss)
			}
			b.ReportMetric(float64(cpu)/1e6/float64(b.N), "CPU-ms/op")
			b.ReportMetric(float64(peak)/1024, "MB")
		})
	}
}
