package policy

import (
	"fmt"
	"strings"
	"testing"
)

func manyRules(n int) string {
	var b strings.Builder
	b.WriteString(`{"version":1,"rules":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		switch i % 4 {
		case 0:
			fmt.Fprintf(&b, `{"id":"r%d","decision":"allow","when":{"tool":"tool%d","command":["a b","c"]},"grants":["network","remoteMutation"]}`, i, i)
		case 1:
			fmt.Fprintf(&b, `{"id":"r%d","decision":"deny","when":{"tool":["git","gh"],"command":["no such %d"]},"reason":"history is shared"}`, i, i)
		case 2:
			fmt.Fprintf(&b, `{"id":"r%d","decision":"confirm","when":{"effects":{"billable":true},"path":{"glob":"/srv/%d/**"}}}`, i, i)
		default:
			fmt.Fprintf(&b, `{"id":"r%d","decision":"deny","when":{"host":"*.h%d.example","effects":{"network":true}}}`, i, i)
		}
	}
	b.WriteString(`]}`)
	return b.String()
}

func BenchmarkDecide1000Rules(b *testing.B) {
	s := mustCompile(b, mustParse(b, LayerUser, manyRules(1000)))
	req := requestOf(tool("gh pr list", "network").on("read:workspace:/home/u/p/a", "write:workspace:/home/u/p/b"))
	b.ReportAllocs()
	for b.Loop() {
		s.Decide(req)
	}
}

func BenchmarkDecideBuiltin(b *testing.B) {
	s := mustCompile(b)
	req := requestOf(tool("git status"))
	b.ReportAllocs()
	for b.Loop() {
		s.Decide(req)
	}
}

func BenchmarkCompileBuiltin(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		mustCompile(b, Builtin())
	}
}

func benchmarkLoad(b *testing.B, size int) {
	n := 1
	for len(manyRules(n+1)) < size {
		n++
	}
	text := manyRules(n)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		mustCompile(b, mustParse(b, LayerUser, text))
	}
}

func BenchmarkLoad4KiB(b *testing.B)  { benchmarkLoad(b, 4<<10) }
func BenchmarkLoad64KiB(b *testing.B) { benchmarkLoad(b, 64<<10) }
