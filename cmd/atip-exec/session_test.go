package main_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// sessionFile is the picture of the README, which `scripts/session` writes.
const sessionFile = "../../docs/session.svg"

// updateSession makes TestSession write the picture instead of comparing it.
const updateSession = "ATIP_UPDATE_SESSION"

// TestSession records the session of the README from the real programs and holds the picture of it
// against that. What differs from machine to machine is an ellipsis in the README, and is in the picture.
func TestSession(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := consoleBlocks(string(text))
	if len(blocks) == 0 || !strings.Contains(string(text), "docs/session.svg") {
		t.Fatal("the README has no session, or does not show its picture")
	}
	w := exampleWorld(t)
	var lines []string
	for _, e := range blocks[0] {
		lines = append(append(lines, "$ "+e.line), w.shown(e)...)
		lines = append(lines, "")
	}
	picture := sessionPicture(lines[:len(lines)-1])
	for _, private := range []string{w.home, w.ws, bin, "/tmp/", "/root/"} {
		if strings.Contains(picture, private) {
			t.Errorf("the picture names %s", private)
		}
	}
	if err := xml.Unmarshal([]byte(picture), new(struct{})); err != nil {
		t.Errorf("the picture is no XML: %v", err)
	}
	if os.Getenv(updateSession) != "" {
		if err := os.WriteFile(sessionFile, []byte(picture), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if committed, err := os.ReadFile(sessionFile); err != nil || !bytes.Equal(committed, []byte(picture)) {
		t.Errorf("docs/session.svg is not what the programs print now (%v); run scripts/session", err)
	}
}

// shown are the lines of an example, each of which the programs print; an ellipsis is anything.
func (w world) shown(e example) []string {
	w.t.Helper()
	cmd := exec.Command("bash", "-c", e.line)
	cmd.Dir, cmd.Env = w.ws, []string{"HOME=" + w.home, "PATH=" + w.path + ":/usr/local/bin:/usr/bin:/bin:" + bin, "ATIP_EXEC_OUTPUT=text"}
	out, _ := cmd.CombinedOutput() // some of them are refused
	var lines []string
	for _, want := range e.want {
		parts := strings.Split(regexp.QuoteMeta(want), "…")
		// The name of a secret differs from run to run: six digits.
		name := regexp.MustCompile(`:([0-9a-f]{6})\\\]`)
		pattern := "(?m)^" + name.ReplaceAllString(strings.Join(parts, ".*"), `:[0-9a-f]{6}\]`) + "$"
		if !regexp.MustCompile(pattern).Match(out) {
			w.t.Errorf("%q does not print %q, but\n%s", e.line, want, out)
			continue
		}
		lines = append(lines, want)
	}
	return lines
}

// sessionPicture draws lines of a terminal, for a light and a dark page.
func sessionPicture(lines []string) string {
	const (
		columns, left, top = 100, 16, 28
		width, height      = 8.43, 20 // of a character of 14 px
	)
	var rows []string
	for _, line := range lines {
		class := "o"
		switch {
		case strings.HasPrefix(line, "$ "):
			class = "p"
		case strings.HasPrefix(line, "atip-exec: "):
			class = "e"
		}
		for _, piece := range folded(line, columns) {
			rows = append(rows, class+piece)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-labelledby="t">
<title id="t">A terminal session with atip-exec; the README has it as text</title>
<style>
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre; }
rect { fill: #f6f8fa; stroke: #d0d7de; }
.p { fill: #0550ae; font-weight: 600; } .o { fill: #1f2328; } .e { fill: #a40e26; }
@media (prefers-color-scheme: dark) {
rect { fill: #0d1117; stroke: #30363d; }
.p { fill: #79c0ff; } .o { fill: #e6edf3; } .e { fill: #ff9492; }
}
</style>
<rect x="0.5" y="0.5" width="%d" height="%d" rx="6"/>
`, int(columns*width)+2*left, len(rows)*height+top, int(columns*width)+2*left-1, len(rows)*height+top-1)
	for i, row := range rows {
		if row[1:] == "" {
			continue
		}
		fmt.Fprintf(&b, `<text class="%s" x="%d" y="%d">`, row[:1], left, top+i*height)
		xml.EscapeText(&b, []byte(row[1:])) // a strings.Builder takes all
		b.WriteString("</text>\n")
	}
	return b.String() + "</svg>\n"
}

// folded cuts a line at blanks, as a terminal of that many columns shows it.
func folded(line string, columns int) []string {
	var out []string
	for len([]rune(line)) > columns {
		cut := strings.LastIndex(string([]rune(line)[:columns]), " ")
		if cut <= 0 {
			cut = len(string([]rune(line)[:columns]))
		}
		out = append(out, line[:cut])
		line = "  " + strings.TrimSpace(line[cut:])
	}
	return append(out, line)
}
