package tools

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cleaning"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/redact"
)

// redactReport is one line of --report json. Offsets are of the input: no other output of
// ours holds them.
type redactReport struct {
	File        string           `json:"file,omitempty"`
	BytesIn     int64            `json:"bytes_in"`
	BytesOut    int64            `json:"bytes_out"`
	Binary      bool             `json:"binary"`
	BinaryBytes int64            `json:"binary_bytes,omitempty"`
	Findings    []filter.Finding `json:"findings"`
	Counts      map[string]int64 `json:"counts"`
}

func redactVerb(c *cli.Console, v *cli.Values) (int, error) {
	mode, _ := filter.BinaryModeByName(v.Get("binary"))
	if !v.Has("binary") {
		mode = filter.BinaryPass
	}
	r, err := cleaning.NewCleaner(caller.Here(), v.All("policy"), redact.Options{NoEnv: v.Has("no-env"), Env: v.All("env"), Values: v.Get("values"),
		Records: v.Has("records"), Check: v.Has("check"), Binary: mode, MaxOutput: v.SizeOf("max-output")})
	if err != nil {
		return 0, err
	}
	var report io.Writer
	if v.Has("report") {
		report = os.Stderr
	}
	if name := v.Get("report-file"); name != "" {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return 0, fault.New(errcode.OutputWrite, err.Error()).With("file", name)
		}
		defer f.Close()
		report = f
	}
	files := v.Rest
	if len(files) == 0 {
		files = []string{""}
	}
	found := false
	for i, file := range files {
		in := io.Reader(os.Stdin)
		if file != "" && file != "-" {
			f, err := os.Open(file)
			if err != nil {
				return 0, fault.New(errcode.NoInputFile, err.Error()).With("file", file)
			}
			defer f.Close()
			in = f
		}
		done, err := r.Copy(in, c.Out, "redact-"+strconv.Itoa(os.Getpid())+"-"+strconv.Itoa(i)+".stdout")
		if err != nil {
			return 0, err
		}
		found = found || len(done.Redactions) > 0
		if text := done.Unfiltered(); text != "" {
			name := file
			if name == "" || name == "-" {
				name = "stdin"
			}
			c.Warn(name + ": " + text)
		}
		if report == nil {
			continue
		}
		line := redactReport{File: file, BytesIn: done.BytesIn, BytesOut: done.BytesOut, Binary: done.Binary, BinaryBytes: done.BinaryBytes,
			Findings: done.Findings, Counts: map[string]int64{}}
		if file != "" {
			line.File = filepath.ToSlash(file)
		}
		if line.Findings == nil {
			line.Findings = []filter.Finding{}
		}
		for _, n := range done.Redactions {
			line.Counts[n.Rule] += n.Count
		}
		if err := json.NewEncoder(report).Encode(line); err != nil {
			return 0, fault.New(errcode.OutputWrite, err.Error())
		}
	}
	if v.Has("check") && found {
		return 1, nil
	}
	return 0, nil
}
