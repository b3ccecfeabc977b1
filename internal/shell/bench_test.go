package shell

import "testing"

const tenCommands = `cd src && git status --short | head -5; for f in a b; do wc -l "$f"; done; if [ -f go.mod ]; then go vet ./...; else ls -la; fi; grep -rn foo . | sort | uniq -c > out.txt; echo done`

func BenchmarkRead(b *testing.B) {
	o := Options{Cwd: "/ws", Home: "/home/u", Getenv: noVariables}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(tenCommands, o); err != nil {
			b.Fatal(err)
		}
	}
}

func noVariables(string) (string, bool, bool) { return "", false, true }
