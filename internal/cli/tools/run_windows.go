package tools

import (
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/runfile"
)

// startFunction needs a descriptor for the code, which Windows has no way to hand over.
func startFunction(*runfile.Call, []string) error {
	return fault.New(errcode.Unconfined, "functions of a Runfile cannot be run on Windows")
}
