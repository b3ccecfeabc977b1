package redact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/regular"
)

// Options say how files are cleaned. The zero value cleans as the output of a command is
// cleaned.
type Options struct {
	NoEnv     bool     // neither the environment nor credential files are read for known values
	Env       []string // variables whose values are known, whatever their names say
	Values    string   // file with one known value a line
	Records   bool     // nothing learned from one line is looked for in another
	Check     bool     // write nothing
	Binary    filter.BinaryMode
	MaxOutput int64 // bytes written of each input; 0 for all
}

// Cleaner cleans files as the output of a command would be cleaned.
type Cleaner struct {
	opt Options
	set *filter.Set
	dir string // of saved output
}

// New makes a Cleaner. The sources are the caller's environment, home and credential files; the
// key is for tags, and saved is where output that is cut is saved whole.
func New(rules Rules, opt Options, caller filter.Sources, key func() filter.TagKey, saved string) (*Cleaner, error) {
	src := caller
	src.ExtraEnv, src.ExtraFiles = append(rules.Env, opt.Env...), rules.Files
	if opt.NoEnv {
		src = filter.Sources{Env: variables(caller.Env, opt.Env), ExtraEnv: opt.Env, ExtraFiles: rules.Files}
	}
	if opt.Values != "" {
		lines, err := knownLines(opt.Values)
		if err != nil {
			return nil, err
		}
		for i, line := range lines {
			name := fmt.Sprintf("VALUE_%d", i+1)
			src.Env = append(src.Env, name+"="+line)
			src.ExtraEnv = append(src.ExtraEnv, name)
		}
	}
	known, err := filter.Collect(src)
	if err != nil {
		return nil, err
	}
	rules.Config.KeepFindings, rules.Config.NoMemory = true, opt.Records
	rules.Config.Binary = max(rules.Config.Binary, opt.Binary)
	set, err := filter.NewSet(rules.Config, known, filter.TagKey{})
	if err != nil {
		return nil, err
	}
	set.KeyFrom(key)
	return &Cleaner{opt: opt, set: set, dir: saved}, nil
}

// variables returns those of env with one of the names.
func variables(env, names []string) []string {
	var out []string
	for _, n := range names {
		for _, kv := range env {
			if len(kv) > len(n) && kv[:len(n)] == n && kv[len(n)] == '=' {
				out = append(out, kv)
			}
		}
	}
	return out
}

// maxValuesFile bounds the file of known values.
const maxValuesFile = 1 << 20

// knownLines reads a file with a value on each line.
func knownLines(file string) ([]string, error) {
	data, err := regular.Read(file, maxValuesFile)
	var large *regular.TooLargeError
	if errors.As(err, &large) {
		return nil, fault.New(errcode.NoInputFile, file+" is not a regular file of at most 1 MiB").With("file", file)
	}
	if err != nil {
		return nil, fault.New(errcode.NoInputFile, err.Error()).With("file", file)
	}
	var out []string
	for line := range bytes.Lines(data) {
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			out = append(out, string(line))
		}
	}
	return out, nil
}

// Copy cleans in and writes it to out. A pause of in lets out go what a prompt may be.
func (r *Cleaner) Copy(in io.Reader, out io.Writer, name string) (filter.Report, error) {
	if r.opt.Check {
		out = io.Discard
	}
	var bound *filter.Bound
	if r.opt.MaxOutput > 0 {
		bound = filter.NewBound(out, filter.Limits{Max: r.opt.MaxOutput}, filter.Save{Dir: r.dir, Name: name})
		out = bound
	}
	w := r.set.Writer(out, filter.Stdout)
	if err := copyIdle(w, in, r.opt.Records); err != nil {
		return filter.Report{}, err
	}
	err := w.Close()
	if bound != nil {
		if closed := bound.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		if filter.Failed(err) {
			return w.Report(), fault.New(errcode.FilterFailed, err.Error())
		}
		return w.Report(), fault.New(errcode.OutputWrite, err.Error())
	}
	return w.Report(), nil
}

// copyIdle copies in to w and calls Idle when in pauses while bytes are held.
func copyIdle(w *filter.Writer, in io.Reader, records bool) error {
	type part struct {
		data []byte
		err  error
	}
	parts, free := make(chan part), make(chan []byte, 2)
	done := make(chan struct{})
	defer close(done)
	free <- make([]byte, drive.ReadSize)
	free <- make([]byte, drive.ReadSize)
	go func() {
		for buf := range free {
			n, err := in.Read(buf[:cap(buf)])
			select {
			case parts <- part{buf[:n], err}:
			case <-done:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := time.Hour
		if w.Held() > 0 {
			wait = filter.IdleAfter
		}
		timer.Reset(wait)
		select {
		case p := <-parts:
			if err := writeRecords(w, p.data, records); err != nil {
				return fault.New(errcode.OutputWrite, err.Error())
			}
			switch {
			case p.err == io.EOF:
				return nil
			case p.err != nil:
				return fault.New(errcode.NoInputFile, p.err.Error())
			}
			free <- p.data
		case <-timer.C:
			if err := w.Idle(); err != nil {
				return fault.New(errcode.OutputWrite, err.Error())
			}
		}
	}
}

// writeRecords writes data; with records each line is a document of its own.
func writeRecords(w *filter.Writer, data []byte, records bool) error {
	for len(data) > 0 {
		n := len(data)
		ends := false
		if records {
			if k := bytes.IndexByte(data, '\n'); k >= 0 {
				n, ends = k+1, true
			}
		}
		if _, err := w.Write(data[:n]); err != nil {
			return err
		}
		if ends {
			if err := w.EndRecord(); err != nil {
				return err
			}
		}
		data = data[n:]
	}
	return nil
}
