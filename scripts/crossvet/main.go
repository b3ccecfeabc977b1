// Crossvet runs the analyzers of `go vet` on packages whose dependencies it reads as source. `go vet`
// compiles them, the standard library included, which takes ten times as long for a system
// whose programs are not needed.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"
	"golang.org/x/tools/go/analysis/suite/vet"
)

func main() { multichecker.Main(vet.Suite...) }
