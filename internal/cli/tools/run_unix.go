//go:build unix

package tools

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/runfile"
)

// startFunction puts atip-exec in the place of this process, so that signals, terminal and
// status are those of the function. The code lies in a file without a name.
func startFunction(call *runfile.Call, flags []string) error {
	code, err := os.CreateTemp("", "atip-run-") // 0600
	if err != nil {
		return fault.New(errcode.OutputWrite, "the code of the function: "+err.Error())
	}
	if err := os.Remove(code.Name()); err != nil {
		return fault.New(errcode.OutputWrite, "the code of the function: "+err.Error())
	}
	if _, err = io.WriteString(code, call.Code); err == nil {
		_, err = code.Seek(0, io.SeekStart)
	}
	if err == nil {
		_, err = unix.FcntlInt(code.Fd(), unix.F_SETFD, 0)
	}
	if err != nil {
		return fault.New(errcode.OutputWrite, "the code of the function: "+err.Error())
	}
	program := beside("atip-exec")
	argv := append([]string{"atip-exec"}, flags...)
	err = syscall.Exec(program, append(argv, call.Words(int(code.Fd()))...), os.Environ())
	return missingCompanion(program, err)
}
