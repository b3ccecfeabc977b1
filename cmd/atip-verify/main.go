// Command atip-verify verifies and makes signatures for the two others, which start it only
// when there is one to look at.
package main

import (
	"os"

	"github.com/atip-dev/atip-exec/internal/cli/prove"
	"github.com/atip-dev/atip-exec/sandbox"
)

func main() {
	sandbox.Init()
	os.Exit(prove.Main(os.Args))
}
