package plan

import (
	"os/exec"
	"testing"
)

// BenchmarkPlan makes the plan of a command again and again in one process; the
// start of a process pays for first use on top, which scripts/bench measures.
func BenchmarkPlan(b *testing.B) {
	dir := b.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	b.Chdir(dir)
	b.Setenv("HOME", dir)
	for _, name := range []string{"true", "git"} {
		b.Run(name, func(b *testing.B) {
			argv := []string{name}
			if name == "git" {
				argv = append(argv, "status", "--short")
			}
			m := here()
			b.ReportAllocs()
			for b.Loop() {
				p, err := Make(Invocation{Argv: argv}, m)
				if err != nil {
					b.Fatal(err)
				}
				p.Close()
			}
		})
	}
}
