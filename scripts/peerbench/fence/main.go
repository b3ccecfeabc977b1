// Command fence answers what the rules for commands of github.com/Use-Tusk/fence say, by
// the protocol of scripts/peerbench: a question {"id","cmd"} a line on stdin, an answer a
// line on stdout. It has a module of its own so that fence is no dependency of this project.
//
// The argument is a configuration file of fence; without one its default counts.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	_ "unsafe" // linkname

	"github.com/Use-Tusk/fence/pkg/fence"
)

// checkCommand is the function that decides. The package that it is in is internal, and
// what is exported starts proxies and a sandbox first.
//
//go:linkname checkCommand github.com/Use-Tusk/fence/internal/sandbox.CheckCommand
func checkCommand(command string, cfg *fence.Config) error

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fence:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	cfg := fence.DefaultConfig()
	if len(args) > 0 {
		var err error
		if cfg, err = fence.LoadConfig(args[0]); err == nil && cfg == nil {
			err = errors.New("no such configuration")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 4<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var q struct{ ID, Cmd string }
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return err
		}
		answer := "allow"
		if checkCommand(q.Cmd, cfg) != nil {
			answer = "deny"
		}
		if err := out.Encode(map[string]string{"id": q.ID, "answer": answer}); err != nil {
			return err
		}
	}
	return lines.Err()
}
