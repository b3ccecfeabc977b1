package report

import (
	"crypto/sha256"
	_ "embed" // the parts of the page
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/audit"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// About is what the top of a page says beside its rows.
type About struct {
	Version  string
	Made     time.Time
	Selected []string // how the rows were selected; none for all
	Chain    audit.Summary
}

// maxBreaks is how many places of a broken chain the page lists.
const maxBreaks = 20

// policy is the Content-Security-Policy of the page: its own style and script by their
// digests, and nothing else; no request leaves it, and no text becomes markup.
func policy() string {
	return "default-src 'none'; script-src " + digest(pageJS) + "; style-src " + digest(pageCSS) + "; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// parts are the template's two halves: the blocks of data come between them.
var parts = template.Must(template.New("page").Parse(pageHTML))

type count struct {
	Outcome Outcome
	Label   string
	Rows    int
}

var labels = map[Outcome]string{Allowed: "allowed", Approved: "approved", Asked: "approval required", Denied: "denied", Other: "other"}

func head(w io.Writer, about About, t Totals) error {
	var counts []count
	for _, o := range Outcomes {
		counts = append(counts, count{o, labels[o], t.Decided[o]})
	}
	var breaks []string
	for i, b := range about.Chain.Broken {
		if i == maxBreaks {
			breaks = append(breaks, fmt.Sprintf("and %d more", len(about.Chain.Broken)-i))
			break
		}
		breaks = append(breaks, fmt.Sprintf("%s:%d: %s", b.File, b.Line, b.Why))
	}
	return parts.ExecuteTemplate(w, "head", map[string]any{
		"Policy": policy(), "Style": template.HTML("<style>" + pageCSS + "</style>"), // our own file: its digest is in the policy
		"About": about, "Made": about.Made.UTC().Format(time.DateTime), "First": clock(t.First), "Last": clock(t.Last), "Selected": strings.Join(about.Selected, ", "),
		"Totals": t, "Counts": counts, "OK": about.Chain.OK(), "Breaks": breaks})
}

// clock is a time of a record to the second.
func clock(t string) string {
	at, err := time.Parse(time.RFC3339Nano, t)
	if err != nil {
		return t
	}
	return at.UTC().Format(time.DateTime)
}

func foot(w io.Writer) error {
	return parts.ExecuteTemplate(w, "foot", map[string]any{"Script": template.HTML("<script>" + pageJS + "</script>")}) // as above
}
