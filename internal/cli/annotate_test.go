package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/fault"
)

// TestAnnotateOneCommand: words of the command line cannot add a workflow command.
func TestAnnotateOneCommand(t *testing.T) {
	var out bytes.Buffer
	c := &Console{Err: &out, getenv: func(name string) string { return map[string]string{"GITHUB_ACTIONS": "true"}[name] }}
	c.annotate(fault.New("E2001", "x\n::add-mask::y\r\n::stop-commands::z 100%"))
	if lines := strings.Count(out.String(), "\n"); lines != 1 || !strings.HasPrefix(out.String(), "::error title=atip-exec E2001::x%0A::add-mask::y%0D%0A") || !strings.HasSuffix(out.String(), "100%25\n") {
		t.Errorf("%q", out.String())
	}
}
