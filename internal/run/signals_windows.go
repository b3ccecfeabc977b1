package run

import "os"

func forwarded() []os.Signal        { return []os.Signal{os.Interrupt} }
func ends(sig os.Signal) bool       { return sig == os.Interrupt }
func signalNumber(os.Signal) int    { return 2 }
func interrupts(sig os.Signal) bool { return sig == os.Interrupt }
func silent(os.Signal) bool         { return false }
func stops(os.Signal) bool          { return false }
func stopSelf()                     {}
func stopSignal() os.Signal         { return os.Interrupt }

func continues(os.Signal) bool        { return false }
func signalGroup(int, os.Signal) bool { return false }
