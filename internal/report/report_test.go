package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/audit"
)

var made = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func plain(argv []string) string { return strings.Join(argv, " ") }

func line(t testing.TB, rec map[string]any) []byte {
	t.Helper()
	raw, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func pageOf(t testing.TB, about About, records ...map[string]any) (string, Totals) {
	t.Helper()
	p, err := New(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, rec := range records {
		if err := p.Add(line(t, rec), nil); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	about.Made = made
	if err := p.Write(&out, about); err != nil {
		t.Fatal(err)
	}
	return out.String(), p.totals
}

var (
	rowBlocks    = regexp.MustCompile(`(?s)<script type="application/json" class="rows">(.*?)</script>`)
	recordBlocks = regexp.MustCompile(`(?s)<script type="application/json" class="records">"(.*?)"</script>`)
)

func rowsIn(t testing.TB, page string) (rows []row) {
	t.Helper()
	for _, m := range rowBlocks.FindAllStringSubmatch(page, -1) {
		var block []row
		if err := json.Unmarshal([]byte(m[1]), &block); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, block...)
	}
	return rows
}

func recordsIn(t testing.TB, page string) (records [][]map[string]any) {
	t.Helper()
	for _, m := range recordBlocks.FindAllStringSubmatch(page, -1) {
		raw, err := base64.StdEncoding.DecodeString(m[1])
		if err != nil {
			t.Fatal(err)
		}
		zip, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		var block [][]map[string]any
		if err := json.NewDecoder(zip).Decode(&block); err != nil {
			t.Fatal(err)
		}
		records = append(records, block...)
	}
	return records
}

// TestHostileNames puts markup, marks of direction and escapes of a terminal into each
// place of a record that the page shows. The markup of the page must be that of a page of
// harmless records, byte by byte.
func TestHostileNames(t *testing.T) {
	names := []string{
		"</script><script>alert(1)</script>", "</SCRIPT >", "<!--<script>", "]]>", `"'` + "`" + `><img src=x onerror=alert(1)>`, "&lt;b&gt;", "{{.Policy}}", "${alert(1)}",
		"\u202egnp.exe", "\u2066x\u2069", "\u200b\ufeff", "\x1b[31mred\x1b]0;title\x07", "\u0085\u009b31m", "a\u2028b\u2029c", "\x00", "\U000e0041", "\u0130 \U0001f600",
	}
	of := func(name string) map[string]any {
		return map[string]any{"id": name, "t": name, "kind": name, "argv": []string{name}, "cwd": name, "session": name, "agent": name, "exit": 0, "state": name,
			"decision": map[string]any{"action": name, "rules": []string{name}, "steps": []any{map[string]any{"argv": []string{name}, "effects": map[string]any{name: map[string]any{"value": name}, "read": map[string]any{"value": name}},
				"resources": []any{map[string]any{"kind": "path", "value": name, "abs": name, "access": "write", "host": name}}}}},
			"error":     map[string]any{"code": name, "message": name},
			"network":   map[string]any{"log": []any{map[string]any{"host": name, "port": 1, "decision": name}}},
			"protected": map[string]any{"changed": []string{name}}}
	}
	about := func(name string) About {
		return About{Version: name, Selected: []string{name}, Chain: audit.Summary{Head: name, Broken: []audit.Break{{File: name, Line: 1, Why: name}}}}
	}
	bare := func(page, name string) string {
		page = rowBlocks.ReplaceAllString(page, "ROWS")
		page = recordBlocks.ReplaceAllString(page, "RECORDS")
		return strings.ReplaceAll(page, html.EscapeString(name), "NAME")
	}
	want, _ := pageOf(t, about("harmless"), of("harmless"))
	shape := regexp.MustCompile(`<[/a-zA-Z!][^>]*>`)
	for _, name := range names {
		got, _ := pageOf(t, about(name), of(name))
		if a, b := fmt.Sprint(shape.FindAllString(bare(got, name), -1)), fmt.Sprint(shape.FindAllString(bare(want, "harmless"), -1)); a != b {
			t.Errorf("%q changes the markup of the page:\n%s\ninstead of\n%s", name, a, b)
		}
		for _, block := range rowBlocks.FindAllStringSubmatch(got, -1) {
			if i := strings.IndexFunc(block[1], func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune("<>&", r) }); i >= 0 {
				t.Errorf("%q: a row holds %q as it is", name, block[1][i:i+1])
			}
		}
		rows := rowsIn(t, got)
		if len(rows) != 1 || rows[0].Command != name || rows[0].Cwd != name || rows[0].Outcome != Other {
			t.Errorf("%q: the row is %+v", name, rows)
		}
		if records := recordsIn(t, got); len(records) != 1 || records[0][0]["cwd"] != name {
			t.Errorf("%q: the record is %v", name, records)
		}
	}
}

// TestPolicyOfThePage holds the digests in the policy against the bytes between the tags.
func TestPolicyOfThePage(t *testing.T) {
	page, _ := pageOf(t, About{})
	got := html.UnescapeString(regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)[1])
	for tag, directive := range map[string]string{"script": "script-src", "style": "style-src"} {
		bodies := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(page, -1)
		if len(bodies) != 1 {
			t.Fatalf("%d elements %s", len(bodies), tag)
		}
		if want := directive + " " + digest(bodies[0][1]) + ";"; !strings.Contains(got, want) {
			t.Errorf("the policy %q lacks %q", got, want)
		}
	}
	for _, want := range []string{"default-src 'none';", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(got, want) {
			t.Errorf("the policy %q lacks %q", got, want)
		}
	}
	// Whatever would leave the page or make markup of a text stays out of it.
	text := strings.ReplaceAll(pageJS+pageCSS+pageHTML, "http://www.w3.org/2000/svg", "") // a name, not an address
	for _, never := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "fetch(", "XMLHttpRequest", "import(", "@import", "url(", "http:", "https:", " src="} {
		if strings.Contains(text, never) {
			t.Errorf("the page holds %q", never)
		}
	}
	if handler := regexp.MustCompile(` on[a-z]+=`).FindString(pageHTML); handler != "" {
		t.Errorf("the page has a handler in its markup: %q", handler)
	}
	if i := strings.IndexFunc(pageJS+pageCSS, func(r rune) bool { return r > '~' }); i >= 0 {
		t.Error("script and style are not ASCII, so that their digest rests on the encoding of the page")
	}
}

// TestRows holds what a row says against its record.
func TestRows(t *testing.T) {
	fact := func(v string) map[string]any { return map[string]any{"value": v} }
	decided := func(action string) map[string]any { return map[string]any{"action": action} }
	for _, c := range []struct {
		rec  map[string]any
		want Outcome
	}{
		{map[string]any{"kind": "run", "exit": 3, "state": "finished", "decision": decided("allow")}, Allowed},
		{map[string]any{"kind": "run", "exit": 0, "state": "finished", "decision": decided("confirm")}, Approved},
		{map[string]any{"kind": "refused", "exit": 77, "state": "refused", "decision": decided("confirm")}, Asked},
		{map[string]any{"kind": "refused", "exit": 77, "state": "refused", "decision": decided("confirm"), "grant": map[string]any{"request": "x"}}, Asked},
		{map[string]any{"kind": "refused", "exit": 77, "state": "refused", "decision": decided("deny")}, Denied},
		{map[string]any{"kind": "refused", "exit": 77, "state": "refused", "decision": decided("allow")}, Denied},
		{map[string]any{"kind": "refused", "exit": 69, "state": "refused", "decision": decided("allow")}, Other},
		{map[string]any{"kind": "run", "exit": 0, "state": "finished", "decision": decided("Allow")}, Other},
		{map[string]any{"kind": "run", "exit": 0, "state": "finished"}, Other},
		{map[string]any{"kind": "killed", "decision": decided("allow")}, Other},
		{map[string]any{"kind": "intent", "decision": decided("allow")}, Other},
		{map[string]any{"kind": "run", "exit": "0", "state": "finished", "decision": decided("allow")}, Other},
		{map[string]any{}, Other},
	} {
		page, _ := pageOf(t, About{}, c.rec)
		if rows := rowsIn(t, page); rows[0].Outcome != c.want {
			t.Errorf("%v is %q instead of %q", c.rec, rows[0].Outcome, c.want)
		}
	}
	page, totals := pageOf(t, About{}, map[string]any{"kind": "run", "argv": []string{"npm", "ci"}, "exit": 0, "state": "finished",
		"decision": map[string]any{"action": "allow", "steps": []any{
			map[string]any{"effects": map[string]any{"network": fact("unknown"), "write": fact("yes"), "reversible": fact("yes"), "delete": fact("no")}},
			map[string]any{"effects": map[string]any{"network": fact("yes"), "billable": fact("unknown"), "reversible": fact("no")}, "resources": []any{map[string]any{"kind": "path", "abs": "/ws/a", "access": "read,write"}, map[string]any{"kind": "path", "abs": "/ws/b", "access": "read"}}}}},
		"network": map[string]any{"log": []any{map[string]any{"host": "a.example", "port": 443, "decision": "allow"}, map[string]any{"host": "b.example", "decision": "deny"}}},
		"starts":  map[string]any{"decided": 4, "refused": 2}, "denials": []any{1, 2, 3}, "undo": map[string]any{"changed": map[string]any{"added": 5}},
		"filter": map[string]any{"stdout": map[string]any{"redactions": []any{map[string]any{"count": 2}}}, "stderr": map[string]any{"redactions": []any{map[string]any{"count": 3}}}}})
	r := rowsIn(t, page)[0]
	if got, want := fmt.Sprint(r.Effects, r.Hosts, r.Files, r.Refused, r.Deferred, r.Denials, r.Redactions, r.Changed.Added), "[write network billable? irreversible] [{a.example:443 reached} {b.example refused}] [{/ws/a write}] 2 4 3 5 5"; got != want {
		t.Errorf("the row says %s instead of %s", got, want)
	}
	if totals.Refused != 2 || totals.Deferred != 4 || totals.Denials != 3 || totals.Redactions != 5 {
		t.Errorf("totals %+v", totals)
	}
}

// TestKilledRunShowsItsIntent adds both lines of a run that was killed.
func TestKilledRunShowsItsIntent(t *testing.T) {
	p, err := New(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	err = p.Add([]byte(`{"kind":"killed","argv":["rm","x"]}`), []byte(`{"kind":"intent","decision":{"action":"allow","rules":["a/rule"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := p.Write(&out, About{Made: made}); err != nil {
		t.Fatal(err)
	}
	if r := rowsIn(t, out.String())[0]; r.Outcome != Other || len(r.Rules) != 1 {
		t.Errorf("the row is %+v", r)
	}
	if records := recordsIn(t, out.String()); len(records[0]) != 2 {
		t.Errorf("%d records behind the row", len(records[0]))
	}
	if err := p.Add([]byte(`{}`), nil); err == nil {
		t.Error("a row was added to a page that is written")
	}
}

func TestBadRecord(t *testing.T) {
	p, err := New(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, bad := range []string{"", "{", `{"id":1}{}`, "\xff"} {
		if p.Add([]byte(bad), nil) == nil {
			t.Errorf("%q became a row", bad)
		}
	}
}

func TestChainStandsOnTop(t *testing.T) {
	page, _ := pageOf(t, About{Chain: audit.Summary{Broken: []audit.Break{{File: "20261123.jsonl", Line: 4, Why: "not a record"}}}})
	told, list := strings.Index(page, "The chain is broken"), strings.Index(page, `id="commands"`)
	if told < 0 || told > list || !strings.Contains(page, "20261123.jsonl:4: not a record") || !strings.Contains(page, "<title>Chain broken: ") || strings.Contains(page, "The chain holds") {
		t.Error("the top of the page does not say that the chain is broken")
	}
	page, _ = pageOf(t, About{Chain: audit.Summary{Records: 3}})
	if !strings.Contains(page, "The chain holds") || strings.Contains(page, "The chain is broken") {
		t.Error("the top of the page does not say that the chain holds")
	}
}

// TestManyRecords adds 100,000 records. What is held does not grow with them.
func TestManyRecords(t *testing.T) {
	const all = 100_000
	p, err := New(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	outcomes := []struct {
		action, state string
		exit          int
		want          Outcome
	}{{"allow", "finished", 0, Allowed}, {"confirm", "finished", 0, Approved}, {"confirm", "refused", 77, Asked}, {"deny", "refused", 77, Denied}}
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	filler := strings.Repeat("name ", 200)
	var early, late uint64
	for i := range all {
		o := outcomes[i%4]
		rec := fmt.Sprintf(`{"id":"%026d","t":"2026-11-23T12:00:00Z","kind":"run","argv":["make","target-%d"],"exit":%d,"state":%q,"decision":{"action":%q},"filler":%q}`, i, i, o.exit, o.state, o.action, filler)
		if err := p.Add([]byte(rec), nil); err != nil {
			t.Fatal(err)
		}
		switch i {
		case 1_050:
			early = held()
		case all - 50:
			late = held()
		}
	}
	if late > early+4<<20 {
		t.Errorf("%d bytes are held after 1,050 records, %d after all: the page keeps what it was given", early, late)
	}
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := p.Write(f, About{Made: made}); err != nil {
		t.Fatal(err)
	}
	if now := held(); now > early+4<<20 {
		t.Errorf("%d bytes are held after the page was written", now)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[Outcome]int{}
	for _, r := range rowsIn(t, string(raw)) {
		counts[r.Outcome]++
	}
	for _, o := range outcomes {
		if counts[o.want] != all/4 || p.totals.Decided[o.want] != all/4 || !strings.Contains(string(raw), fmt.Sprintf(`data-total="%s">%d<`, o.want, all/4)) {
			t.Errorf("%s: %d rows, %d in the totals", o.want, counts[o.want], p.totals.Decided[o.want])
		}
	}
	if blocks := len(recordBlocks.FindAllIndex(raw, -1)); blocks != all/blockRows {
		t.Errorf("%d blocks of records", blocks)
	}
}
