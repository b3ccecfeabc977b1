package drive

import (
	"os"
	"syscall"
)

func Endings() []os.Signal          { return []os.Signal{os.Interrupt} }
func Forwarded() []os.Signal        { return nil }
func raise(os.Signal)               { os.Exit(130) }
func ends(sig os.Signal) bool       { return sig == os.Interrupt }
func SignalNumber(os.Signal) int    { return 2 }
func Interrupts(sig os.Signal) bool { return sig == os.Interrupt }
func Stops(os.Signal) bool          { return false }
func StopSelf()                     {}
func stopSignal() os.Signal         { return os.Interrupt }

// Continues reports the signal that lets a stopped job go on.
func Continues(os.Signal) bool        { return false }
func signalGroup(int, os.Signal) bool { return false }

func SignalName(sig syscall.Signal) string { return sig.String() }
