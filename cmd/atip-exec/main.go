// Command atip-exec runs a command inside the limits of its declared effects.
package main

import (
	"os"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/drive"
	_ "github.com/atip-dev/atip-exec/internal/hugepage" // before what it speeds up
	"github.com/atip-dev/atip-exec/sandbox"
)

func main() {
	sandbox.Init()
	drive.PutOffGC()
	os.Exit(cli.Main(os.Args))
}
