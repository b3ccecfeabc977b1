// Command atip-exec runs a command inside the limits of its declared effects.
package main

import (
	"os"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/sandbox"
)

func init() { sandbox.PinMain() }

func main() {
	sandbox.Init()
	// The main goroutine is pinned: each time it waited, the work would change threads.
	go func() { os.Exit(cli.Main(os.Args)) }()
	select {}
}
