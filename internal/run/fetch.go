package run

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/fetch"
	"github.com/atip-dev/atip-exec/internal/plan"
)

// maxSaid is how much of what a fetching run said is shown if it failed.
const maxSaid = 2 << 10

// fetchApart fetches what the project declares, each time in a run of its own. The command itself
// then works without network. If something could not be fetched it says best itself what it lacks,
// as all of it may be there already.
func (x *execution) fetchApart() error {
	for i, w := range x.plan.Fetches {
		if err := x.fetch(w, filepath.Join(x.plan.FetchDir(), strconv.Itoa(i))); err != nil {
			return err
		}
		if err := x.cancelledMeanwhile(); err != nil {
			return err
		}
	}
	return nil
}

func (x *execution) fetch(w *fetch.Work, dir string) error {
	defer os.RemoveAll(x.plan.FetchDir())
	forsaken(filepath.Dir(x.plan.FetchDir()))
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = w.Lay(dir)
	}
	if err != nil {
		return fault.New(errcode.Confinement, "what the project declares cannot be copied: "+err.Error())
	}
	said := &last{}
	r := Run(x.plan.FetchOf(w, dir), plan.FetchMachine(w, x.plan.Machine), Output{Stdout: io.Discard, Stderr: said, Warn: func(string) {}})
	switch {
	case r.Fault != nil:
		x.warn("what the project declares was not fetched: " + r.Fault.Message)
	case r.ExitCode != 0:
		x.warn("what the project declares was not fetched (" + strings.Join(w.Argv, " ") + ", exit status " + strconv.Itoa(r.ExitCode) + "): " + strings.TrimSpace(said.String()))
	}
	return nil
}

// forsaken removes the directories of fetching runs that were killed.
func forsaken(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// last keeps the end of what is written.
type last struct{ bytes.Buffer }

func (l *last) Write(p []byte) (int, error) {
	n := len(p)
	l.Buffer.Write(p)
	if extra := l.Len() - maxSaid; extra > 0 {
		l.Next(extra)
	}
	return n, nil
}
