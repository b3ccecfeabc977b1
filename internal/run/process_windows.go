package run

import (
	"os"
	"syscall"
)

func signalName(sig syscall.Signal) string { return sig.String() }
func processID() int                       { return os.Getpid() }
func sessionID() int                       { return 0 }
func readOnlyPipe(int) bool                { return false }
