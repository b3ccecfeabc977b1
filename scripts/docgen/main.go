// Command docgen writes the parts of docs/ that tables of the program determine.
// It is run from the root of the module.
package main

import (
	"fmt"
	"os"

	"github.com/atip-dev/atip-exec/internal/cli"
)

func main() {
	if err := os.WriteFile("docs/exit-codes.md", []byte(cli.ExitCodesMarkdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}
