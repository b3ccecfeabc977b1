//go:build !linux

// Command ownfloor measures what own steps cost at least, which only Linux has.
package main

import "os"

func main() { os.Exit(1) }
