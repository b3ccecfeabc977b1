package permit

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/outside"
	"github.com/atip-dev/atip-exec/internal/regular"
)

// notify starts the command with which the user's or the managed policy tells a person
// of a new request; it gets the request on standard input. If the run waits, the
// command may print a signed grant, which counts like any other: by its signature.
func (x *Permission) notify() {
	p := x.plan
	command := p.Policies.Approval().Command
	if command == "" || x.request == "" || p.Machine.Getenv("ATIP_EXEC_SANDBOX") != "" {
		return
	}
	if err := x.startNotifier(command); err != nil {
		x.warnings = append(x.warnings, "approval.command: "+err.Error())
	}
}

func (x *Permission) startNotifier(command string) error {
	p := x.plan
	request, err := regular.Open(filepath.Join(p.RequestsDir(), x.request+".json"))
	if err != nil {
		return err
	}
	defer request.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	out := null
	var in *os.File
	if p.Invocation.Wait > 0 {
		if in, out, err = os.Pipe(); err != nil {
			return err
		}
		defer out.Close()
	}
	cmd := outside.Command(context.Background(), p.Dirs, p.Machine.Getenv, nil, "/bin/sh", "-c", command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = request, out, null
	outside.Detach(cmd)
	if err := cmd.Start(); err != nil {
		if in != nil {
			in.Close()
		}
		return err
	}
	if in == nil {
		return cmd.Process.Release() // it tells a person; nobody waits for it
	}
	go func() {
		defer in.Close()
		raw, err := io.ReadAll(io.LimitReader(in, 16<<10))
		if err == nil && len(raw) > 0 {
			approve.StoreGrant(p.GrantsDir(), raw)
		}
		cmd.Process.Wait()
	}()
	return nil
}
