package run

import "os"

func endings() []os.Signal          { return []os.Signal{os.Interrupt} }
func forwarded() []os.Signal        { return nil }
func raise(os.Signal)               { os.Exit(130) }
func ends(sig os.Signal) bool       { return sig == os.Interrupt }
func signalNumber(os.Signal) int    { return 2 }
func interrupts(sig os.Signal) bool { return sig == os.Interrupt }
func stops(os.Signal) bool          { return false }
func stopSelf()                     {}
func stopSignal() os.Signal         { return os.Interrupt }

func continues(os.Signal) bool        { return false }
func signalGroup(int, os.Signal) bool { return false }
