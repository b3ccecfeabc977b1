package atip

import (
	"fmt"
	"strings"
	"testing"
)

// bigDocument is a shim the size of a large builtin: about 58 KB, 191 commands.
func bigDocument() []byte {
	var b strings.Builder
	b.WriteString(`{"atip":"0.6","name":"big","version":"1","description":"A tool with many commands","trust":{"source":"org"},
"globalOptions":[{"name":"dir","flags":["-C","--dir"],"type":"directory","description":"Where"}],"commands":{`)
	for i := range 191 {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `"command%d":{"description":"Does the thing number %d","options":[{"name":"force","flags":["-f","--force"],"type":"boolean","description":"Force"}],"effects":{"network":true,"destructive":false,"filesystem":{"read":true,"write":false}}`, i, i)
		if i == 180 {
			b.WriteString(`,"x-atip-effects":{"v":1,"base":{"network":true},"when":[{"id":"force","if":{"anyOption":["-f"]},"add":{"destructive":true}}]}`)
		}
		b.WriteString("}")
	}
	b.WriteString("}}")
	for b.Len() < 58<<10 {
		b.WriteString(strings.Repeat(" ", 64))
	}
	return []byte(b.String())
}

func BenchmarkParse(b *testing.B) {
	raw := bigDocument()
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(raw, ParseOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseResolve(b *testing.B) {
	raw := bigDocument()
	argv := []string{"big", "-C", "x", "command180", "--force", "y"}
	o := ResolveOptions{Provenance: Provenance{Rank: Org, Source: "builtin:big"}}
	b.ReportAllocs()
	for b.Loop() {
		d, err := Parse(raw, ParseOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if c := d.Resolve(argv, o); len(c.Path) != 1 || c.Effects[Destructive].Value != Yes {
			b.Fatal(c.Path, c.Effects[Destructive])
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	d, err := Parse(bigDocument(), ParseOptions{})
	if err != nil {
		b.Fatal(err)
	}
	argv := []string{"big", "-C", "x", "command180", "--force", "y"}
	b.ReportAllocs()
	for b.Loop() {
		d.Resolve(argv, ResolveOptions{Provenance: Provenance{Rank: Org}})
	}
}

func BenchmarkSQL(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		classifySQL("WITH x AS (SELECT 1) SELECT a, count(*) FROM t WHERE b = 'c' GROUP BY a")
	}
}

func BenchmarkIndexedResolve(b *testing.B) {
	raw := bigDocument()
	index, err := Index(raw, ParseOptions{})
	if err != nil {
		b.Fatal(err)
	}
	argv := []string{"big", "-C", "x", "command180", "--force", "y"}
	o := ResolveOptions{Provenance: Provenance{Rank: Org, Source: "builtin:big"}}
	b.ReportAllocs()
	for b.Loop() {
		d, err := ParseIndexed(raw, index)
		if err != nil {
			b.Fatal(err)
		}
		if c := d.Resolve(argv, o); len(c.Path) != 1 || c.Effects[Destructive].Value != Yes {
			b.Fatal(c.Path, c.Effects[Destructive])
		}
	}
}
