package run

import (
	"errors"
	"os"
	"syscall"
)

func signalName(sig syscall.Signal) string { return sig.String() }
func processID() int                       { return os.Getpid() }
func sessionID() int                       { return 0 }
func readOnlyPipe(int) bool                { return false }
func writable(*os.File) bool               { return true }

func ownSession() *syscall.SysProcAttr { return nil }

func lockExclusive(*os.File) error { return errors.New("budgets cannot be shared by runs here") }
