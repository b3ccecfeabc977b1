//go:build unix

package cli

import "syscall"

const exeSuffix = ""

func replaceProcess(path string, argv, env []string) error { return syscall.Exec(path, argv, env) }
