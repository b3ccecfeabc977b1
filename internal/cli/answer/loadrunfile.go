package answer

import (
	"os"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/runfile"
)

// Runfile reads the Runfile that counts here; file is of --runfile, "" to look.
func Runfile(file string) (*runfile.File, error) {
	dirs, _, err := Home()
	if err != nil {
		return nil, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fault.New(errcode.NoInputFile, err.Error())
	}
	return runfile.Load(runfile.Place{File: file, Dir: cwd, Home: dirs.Home, Global: os.Getenv("RUN_NO_GLOBAL_MERGE") != "1", UID: os.Geteuid()})
}
