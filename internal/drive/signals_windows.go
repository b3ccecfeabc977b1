package drive

import (
	"os"
	"syscall"
)

func raise(os.Signal)       { os.Exit(130) }
func stopSignal() os.Signal { return os.Interrupt }

func signalGroup(int, os.Signal) bool { return false }

func SignalName(sig syscall.Signal) string { return sig.String() }
