//go:build !linux

// Command composed measures a confined start, which only Linux has.
package main

import "os"

func main() { os.Exit(1) }
