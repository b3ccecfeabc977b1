// Command goexec is the yardstick of the benchmark: the same child started by
// os/exec with two pipes that are copied to the end.
package main

import (
	"io"
	"os"
	"os/exec"
	"sync"
)

func main() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin = os.Stdin
	stdout, err := cmd.StdoutPipe()
	exitOn(err)
	stderr, err := cmd.StderrPipe()
	exitOn(err)
	exitOn(cmd.Start())
	var copies sync.WaitGroup
	copies.Go(func() { io.Copy(os.Stdout, stdout) })
	copies.Go(func() { io.Copy(os.Stderr, stderr) })
	copies.Wait()
	exitOn(cmd.Wait())
}

func exitOn(err error) {
	if err != nil {
		os.Exit(1)
	}
}
