package cli

import (
	"io"
	"os"
	"strings"

	"github.com/atip-dev/atip-exec/internal/fault"
)

// annotate tells GitHub Actions of an error of ours: a workflow command on stderr,
// after the error itself, and a line in the job's summary. See "Workflow commands for
// GitHub Actions".
func (c *Console) annotate(f *fault.Fault) {
	if c.getenv("GITHUB_ACTIONS") != "true" {
		return
	}
	io.WriteString(c.Err, "::error title="+escapeProperty("atip-exec "+f.Code)+"::"+escapeData(f.Message)+"\n")
	path := c.getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return
	}
	summary, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return // the error itself is on stderr
	}
	defer summary.Close()
	io.WriteString(summary, "- **atip-exec "+f.Code+"**: `"+strings.NewReplacer("`", "'", "\n", " ", "\r", " ").Replace(f.Message)+"`\n")
}

// escapeData keeps a text inside the value of a workflow command: a command line of
// an agent must not begin a command of its own.
func escapeData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func escapeProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
