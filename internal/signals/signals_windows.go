package signals

import "os"

func Endings() []os.Signal          { return []os.Signal{os.Interrupt} }
func Forwarded() []os.Signal        { return nil }
func Number(os.Signal) int          { return 2 }
func Interrupts(sig os.Signal) bool { return sig == os.Interrupt }
func Continues(os.Signal) bool      { return false }
func Stops(os.Signal) bool          { return false }
func StopSelf()                     {}
