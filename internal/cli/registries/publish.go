package registries

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/shims/remote"
	"github.com/atip-dev/atip-exec/trust/settle"
)

// PublishVerb lays out a registry in a folder, and with a key signs what lies there. It sends
// nothing.
func PublishVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) == 0 {
		return 0, fault.New(errcode.Arguments, "publish needs a directory").WithFix("name the directory to serve, then the documents", "atip publish www mytool.json")
	}
	dir, key := v.Rest[0], v.Get("key")
	if key == "" {
		for _, path := range remote.Stated(dir) {
			if _, err := os.Stat(path + ".bundle"); err == nil {
				return 0, fault.New(errcode.Arguments, path+" is signed, and would no longer match its signature").WithFix("give the key that signs this registry", "atip publish --key release.key "+dir)
			}
		}
	}
	uploads, err := remote.Uploads(v.Rest[1:])
	if err == nil && key != "" {
		err = signUploads(key, uploads)
	}
	if err == nil {
		var p remote.Published
		o := remote.PublishOptions{Name: v.Get("name"), URL: v.Get("url"), RequireSignatures: v.Has("require-signatures"), State: v.Has("state"), Now: time.Now()}
		if p, err = remote.Publish(dir, uploads, o); err == nil && key != "" {
			for _, path := range remote.Stated(dir) {
				if err == nil {
					err = signFile(key, path, path+".bundle")
				}
			}
		}
		if err == nil {
			return 0, published(c, p)
		}
	}
	if f := fault.From(err); f.Code != errcode.Internal {
		return 0, f
	}
	return 0, fault.New(errcode.NoInputFile, err.Error())
}

// signUploads signs the documents that come without a signature, as they are.
func signUploads(key string, uploads []remote.Upload) error {
	dir, err := os.MkdirTemp("", "atip-publish-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for i := range uploads {
		u := &uploads[i]
		if u.Bundle != nil {
			continue
		}
		out := filepath.Join(dir, "bundle")
		if err := signFile(key, u.File, out); err != nil {
			return err
		}
		if u.Bundle, err = os.ReadFile(out); err != nil {
			return err
		}
	}
	return nil
}

// signFile has the program that links the signature libraries sign a file.
func signFile(key, file, bundle string) error {
	helper := settle.HelperBeside(caller.Here().Self)
	if why := settle.HelperMissing(helper); why != "" {
		return fault.New(errcode.NoCompanion, why).WithFix("install `atip-verify` beside `atip`", "")
	}
	var stderr strings.Builder
	cmd := exec.Command(helper, "sign", "-o", "json", "--key", key, "--bundle", bundle, "--", file)
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		var e struct{ Error struct{ Message string } }
		message := err.Error()
		if json.Unmarshal([]byte(stderr.String()), &e) == nil && e.Error.Message != "" {
			message = e.Error.Message
		}
		return fault.New(errcode.MetadataStructure, file+" was not signed: "+message).With("file", file).WithFix("correct what is named; the folder has no signature of it", "")
	}
	return nil
}

func published(c *cli.Console, p remote.Published) error {
	if c.Documents() {
		return c.Document(struct {
			Kind string `json:"kind"`
			remote.Published
		}{"atip-exec.publish/1", p})
	}
	return c.Text(answer.Plain(fmt.Sprintf("%s: %d documents added, %d of %d tools in all, %d signed", p.Dir, len(p.Added), p.Total, p.Tools, p.Signed)) + "\n")
}
