package settle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/trust/request"
)

// TestAskOnABusyMachine: a verifier that is late because it works, as one does that a busy machine
// has kept waiting, is not killed; one that only sleeps is.
func TestAskOnABusyMachine(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, want string }{
		{"works", "while ((SECONDS < 4)); do :; done\nexit 3\n", "exit status 3"},
		{"sleeps", "exec sleep 60\n", "no answer in time"},
		{"works, then sleeps", "while ((SECONDS < 1)); do :; done\nexec sleep 60\n", "no answer in time"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			helper := filepath.Join(t.TempDir(), "verifier")
			if err := os.WriteFile(helper, []byte("#!/bin/bash\n"+row.text), 0o700); err != nil {
				t.Fatal(err)
			}
			_, err := Ask(helper, "1", nil, []request.Request{{V: request.Version, ID: "1"}})
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}
