// Command atip-exec runs a command inside the limits of its declared effects.
package main

import (
	"os"

	"github.com/atip-dev/atip-exec/internal/cli"
	_ "github.com/atip-dev/atip-exec/internal/hugepage" // before what it speeds up
	"github.com/atip-dev/atip-exec/sandbox"
)

func main() {
	sandbox.Init()
	os.Exit(cli.Main(os.Args))
}
