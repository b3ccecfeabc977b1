package cli

import (
	"errors"
	"io"
	"os"
	"os/exec"
)

const exeSuffix = ".exe"

// replaceProcess runs path and exits with its status: Windows has no execve.
func replaceProcess(path string, argv, env []string) error {
	cmd := exec.Command(path, argv[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		os.Exit(cmd.ProcessState.ExitCode())
	}
	return err
}

// unbroken is w: there is no signal for a closed pipe.
func unbroken(w io.Writer) io.Writer { return w }
