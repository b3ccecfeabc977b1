package settle

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/request"
)

// HelperName is the program that verifies. It lies beside our own executable and is never
// looked up in PATH.
const HelperName = "atip-verify"

// HelperBeside is its path for the program at self.
func HelperBeside(self string) string { return filepath.Join(filepath.Dir(self), HelperName) }

// HelperMissing says why the verifier is not started, "" if it would be.
func HelperMissing(path string) string {
	if path == "" || !filepath.IsAbs(path) {
		return "its path is not known"
	}
	return safeProgram(path)
}

// asked puts questions to the verifier and fills in what is settled.
func (s *Session) asked(list []request.Request, of []int, keys []string, queries []Query, out []trust.Settled) {
	fail := func(v trust.Verify, why string) {
		s.warn(why)
		for n, i := range of {
			o := &out[i]
			o.SigType, o.Bundle, o.Verify = trust.SigCosign, trust.BundlePresent, v
			if len(queries[i].Signatures) == 0 {
				// Only a checksum or the package database was to be asked about.
				o.SigType, o.Bundle = queries[i].declared(), trust.BundleAbsent
			}
			o.Checksum = queries[i].checksum()
			s.note(queries[i], why)
			_ = n
		}
	}
	if why := HelperMissing(s.Helper); why != "" {
		fail(trust.VerifyMissing, "verifier_missing: "+HelperName+" cannot be started: "+why)
		return
	}
	answers, err := Ask(s.Helper, s.Version, s.Environ, list)
	if err != nil {
		fail(trust.VerifyFailed, "verifier_failed: "+err.Error())
		return
	}
	for n, a := range answers {
		i := of[n]
		expected, changed := out[i].Expected, out[i].Changed
		out[i] = a.Settled
		out[i].Expected, out[i].Changed, out[i].Offline = expected, changed, s.Offline
		s.note(queries[i], a.Detail)
		if a.Cacheable && out[i].Verify != trust.VerifyFailed {
			s.store(keys[n], record{Settled: a.Settled, Detail: a.Detail})
		}
	}
}

// Ask starts the verifier once for at most 64 questions. It gets two seconds for each, no
// variable but those that name directories, and its output is bounded.
func Ask(helper, version string, environ []string, list []request.Request) ([]request.Answer, error) {
	input, err := request.Encode(list)
	if err != nil {
		return nil, err
	}
	if len(input) > request.MaxInput {
		return nil, errors.New("the evidence has more than 8 MiB")
	}
	ctx, cancel := context.WithTimeout(context.Background(), request.Patience*time.Duration(len(list)))
	defer cancel()
	cmd := exec.CommandContext(ctx, helper, "verify", "--request", "-")
	cmd.Env = []string{"GOMEMLIMIT=256MiB"}
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); name == "HOME" || strings.HasPrefix(name, "XDG_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Dir = "/"
	cmd.WaitDelay = 200 * time.Millisecond
	var stdout, stderr limited
	stdout.limit, stderr.limit = request.MaxOutput, 4<<10
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, errors.New("the verifier gave no answer in time")
	case err != nil:
		return nil, errors.New("the verifier ended with " + err.Error())
	case stdout.over:
		return nil, errors.New("the verifier answered with more than 256 KiB")
	}
	return request.Answers(stdout.kept, list, version)
}

// limited keeps the first bytes of a stream.
type limited struct {
	kept  []byte
	limit int
	over  bool
}

func (l *limited) Write(p []byte) (int, error) {
	room := max(l.limit-len(l.kept), 0)
	if len(p) > room {
		l.over = true
		l.kept = append(l.kept, p[:room]...)
		return len(p), nil
	}
	l.kept = append(l.kept, p...)
	return len(p), nil
}

func cutLower(stated string) (algorithm, hex string) {
	algorithm, hex, _ = strings.Cut(strings.ToLower(stated), ":")
	return algorithm, hex
}
