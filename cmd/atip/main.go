// Command atip holds every verb that is not on the path of a command.
package main

import (
	"os"

	"github.com/atip-dev/atip-exec/internal/cli/tools"
	_ "github.com/atip-dev/atip-exec/internal/hugepage" // before what it speeds up
	"github.com/atip-dev/atip-exec/sandbox"
)

func main() {
	sandbox.Init()
	os.Exit(tools.Main(os.Args))
}
