package run

import (
	"errors"
	"os"
	"syscall"
	"time"
)

func signalName(sig syscall.Signal) string { return sig.String() }
func processID() int                       { return os.Getpid() }
func sessionID() int                       { return 0 }
func readOnlyPipe(int) bool                { return false }

func lockExclusive(*os.File) error { return errors.New("budgets cannot be shared by runs here") }

func lockWithin(*os.File, time.Duration) bool { return false }
