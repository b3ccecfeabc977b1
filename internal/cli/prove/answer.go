package prove

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/owner"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/distro"
	"github.com/atip-dev/atip-exec/trust/request"
	"github.com/atip-dev/atip-exec/trust/verifier"
)

// answer is the helper: it reads all requests, confines itself, and then looks at what others
// wrote for the first time. It returns 70 for whatever it cannot answer: the side that asks
// takes that as a verifier that failed.
func answer(in io.Reader, out io.Writer) (status int) {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "atip-verify:", err)
		return 70
	}
	defer func() {
		if r := recover(); r != nil {
			status = fail(fmt.Errorf("internal error: %v", r))
		}
	}()
	list, err := request.Read(in)
	if err != nil {
		return fail(err)
	}
	v := &verifier.Verifier{Version: cli.Version, Now: time.Now, Distro: asker(list)}
	if runtime.GOOS == "linux" {
		if err := sandbox.Enclose(readable(list)); err != nil {
			return fail(err)
		}
	}
	w := bufio.NewWriter(out)
	e := json.NewEncoder(w)
	for _, r := range list {
		if err := e.Encode(v.Answer(r)); err != nil {
			return fail(err)
		}
	}
	if err := w.Flush(); err != nil {
		return fail(err)
	}
	return 0
}

// readable is what the requests are about, and the package databases if one asks for them.
func readable(list []request.Request) []string {
	var out []string
	databases := false
	for _, r := range list {
		if r.Subject.Path != "" {
			out = append(out, r.Subject.Path)
		}
		databases = databases || r.Distro != ""
	}
	if databases {
		out = append(out, distro.Paths()...)
	}
	return out
}

// asker asks the package databases. rpm's only rpm itself can read: it is started before
// this process gives up that right.
func asker(list []request.Request) func(path, sha256 string) distro.Answer {
	root := distro.Root{Dir: "/", Owned: func(path string) bool { return rootOwned(path) }}
	if len(list) > 4 {
		root = root.Keeping()
	}
	rpm := map[string]distro.Answer{}
	for _, r := range list {
		if r.Distro == "" || r.Subject.Path == "" {
			continue
		}
		if _, err := os.Stat("/var/lib/dpkg/info"); err == nil {
			break
		}
		if a, ok := root.RPM(r.Subject.Path); ok {
			rpm[r.Subject.Path] = a
		}
	}
	return func(path, sha256 string) distro.Answer {
		if a, ok := rpm[path]; ok && (a.Distro != trust.DistroUnknown || a.Package != "") {
			return a
		}
		return root.Ask(path, sha256)
	}
}

func rootOwned(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	uid, _, ok := owner.Of(info)
	return ok && owner.IsRoot(uint32(uid), path)
}
