package prove

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/newfile"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/trust/sigstore"
)

// maxSigned bounds a file that is signed: the library signs bytes in memory.
const maxSigned = 512 << 20

// signVerb signs a file and writes the bundle beside it.
func signVerb(c *cli.Console, v *cli.Values) (int, error) {
	if v.Has("new-key") {
		return newKey(c, v)
	}
	if len(v.Rest) != 1 {
		return 0, fault.New(errcode.Arguments, "sign needs one file").WithFix("name the file", "atip sign --key release.key dep.json")
	}
	raw, err := input(v.Rest[0], maxSigned)
	if err != nil {
		return 0, err
	}
	return made(c, v, v.Rest[0], raw, false)
}

// attestVerb makes a statement about a file and signs that.
func attestVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) != 1 || !v.Has("type") || !v.Has("predicate") {
		return 0, fault.New(errcode.Arguments, "attest needs a file, --type and --predicate").WithFix("name them", "atip attest --key release.key --type https://slsa.dev/provenance/v1 --predicate build.json tool")
	}
	raw, err := input(v.Rest[0], maxSigned)
	if err != nil {
		return 0, err
	}
	predicate, err := input(v.Get("predicate"), 1<<20)
	if err != nil {
		return 0, err
	}
	if err := atip.ScanStrict(predicate, atip.ParseOptions{MaxBytes: 1 << 20}); err != nil {
		return 0, fault.New(errcode.MetadataStructure, v.Get("predicate")+": "+err.Error()).With("file", v.Get("predicate"))
	}
	sum := sha256.Sum256(raw)
	statement, err := sigstore.NewStatement(filepath.Base(v.Rest[0]), hex.EncodeToString(sum[:]), v.Get("type"), predicate)
	if err != nil {
		return 0, fault.New(errcode.MetadataStructure, err.Error())
	}
	return made(c, v, v.Rest[0], statement, true)
}

// input reads a regular file of at most limit bytes.
func input(file string, limit int64) ([]byte, error) {
	raw, err := regular.Read(file, limit)
	if err == nil {
		return raw, nil
	}
	why := plainError(err)
	var large *regular.TooLargeError
	if errors.Is(err, regular.ErrNot) || errors.As(err, &large) {
		why = "is not a regular file of at most " + size(limit)
	}
	return nil, fault.New(errcode.NoInputFile, file+": "+why).With("file", file)
}

func plainError(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func size(n int64) string {
	if n >= 1<<20 {
		return strconv.Itoa(int(n>>20)) + " MiB"
	}
	return strconv.Itoa(int(n>>10)) + " KiB"
}

// made signs and writes.
func made(c *cli.Console, v *cli.Values, file string, data []byte, statement bool) (int, error) {
	s := sigstore.Signing{Data: data, Statement: statement, Fulcio: v.Get("fulcio"), Rekor: v.Get("rekor"), RekorV2: v.Has("rekor-v2"), TSA: v.Get("tsa")}
	if key := v.Get("key"); key != "" {
		raw, err := secretFile(key)
		if err != nil {
			return 0, err
		}
		s.Key = raw
	} else if token := v.Get("identity-token"); token != "" {
		raw, err := secretFile(token)
		if err != nil {
			return 0, err
		}
		s.Token = strings.TrimSpace(string(raw))
	}
	if s.Key == nil && s.Fulcio == "" {
		return 0, fault.New(errcode.Arguments, "no signer is given").WithFix("name a key, or the URLs of a Fulcio and a log with a file that holds an identity token", "atip sign --key release.key dep.json")
	}
	for _, flag := range [...]string{"fulcio", "rekor", "tsa"} {
		if at := v.Get(flag); at != "" {
			if why := sigstore.Address(at); why != "" {
				return 0, fault.New(errcode.Arguments, "--"+flag+": "+at+" "+why).WithFix("name the https URL of the service", "")
			}
		}
	}
	if s.TSA == "" && (s.RekorV2 || s.Key == nil && s.Rekor == "") {
		return 0, fault.New(errcode.Arguments, "nothing would prove the time of the signature").WithFix("add --tsa URL, or --rekor URL for a log of version 1", "")
	}
	ctx, done := cli.Limited(2 * time.Minute)
	defer done()
	bundle, err := sigstore.Sign(ctx, s)
	if err != nil {
		if s.Key != nil && s.Rekor == "" && s.TSA == "" {
			return 0, fault.New(errcode.MetadataStructure, "the file was not signed: "+err.Error()).With("file", v.Get("key"))
		}
		return 0, fault.New(errcode.RegistryUnavailable, "the file was not signed: "+err.Error()).WithFix("run it again when the services answer; nothing was written", "")
	}
	target := v.Get("bundle")
	if target == "" {
		target = file + ".bundle"
	}
	if err := written(target, newfile.Replace(target, bundle, 0o644)); err != nil {
		return 0, err
	}
	sum := sha256.Sum256(bundle)
	return 0, c.Answer(map[string]any{"kind": "atip-exec.sign/1", "file": file, "bundle": target, "bundleSha256": hex.EncodeToString(sum[:]), "logged": s.Rekor != ""}, target+"\n")
}

// secretFile reads a key or token that only its owner can read.
func secretFile(file string) ([]byte, error) {
	raw, err := input(file, 64<<10)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
		return nil, fault.New(errcode.NoInputFile, file+" can be read by others").With("file", file).WithFix("let only its owner read it", "chmod 600 "+file)
	}
	return raw, nil
}

// newKey makes a key pair: FILE and FILE.pub. A key that is there stays.
func newKey(c *cli.Console, v *cli.Values) (int, error) {
	file := v.Get("new-key")
	private, public, err := sigstore.NewKey()
	if err != nil {
		return 0, fault.New(errcode.Internal, err.Error())
	}
	for _, path := range []string{file, file + ".pub"} {
		if _, err := os.Lstat(path); err == nil {
			return 0, fault.New(errcode.NoInputFile, path+" is there already").With("file", path).WithFix("name another file", "")
		}
	}
	if err := written(file, newfile.Create(file, private, 0o600)); err != nil {
		return 0, err
	}
	if err := written(file+".pub", newfile.Create(file+".pub", public, 0o644)); err != nil {
		return 0, err
	}
	_, id, err := sigstore.PublicKey(public)
	if err != nil {
		return 0, fault.New(errcode.Internal, err.Error())
	}
	return 0, c.Answer(map[string]any{"kind": "atip-exec.key/1", "key": file, "public": file + ".pub", "keyid": id}, file+"\n"+file+".pub\n")
}

// written says what became of a file that was put in place.
func written(path string, err error) error {
	if err == nil {
		return nil
	}
	return fault.New(errcode.OutputWrite, path+": "+plainError(err)).With("file", path)
}
