package approve

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// The signature format of "ssh-keygen -Y sign" (OpenSSH PROTOCOL.sshsig). Only
// ed25519 keys are taken, in a file or on a security key.
const (
	sshsigMagic = "SSHSIG"
	keyPlain    = "ssh-ed25519"
	keyHardware = "sk-ssh-ed25519@openssh.com"
	flagPresent = 0x01 // the person touched the key (PROTOCOL.u2f)
	sshsigBegin = "-----BEGIN SSH SIGNATURE-----"
	sshsigEnd   = "-----END SSH SIGNATURE-----"
	maxSSHSig   = 8 << 10
)

// signature is a parsed SSHSIG.
type signature struct {
	key       []byte // the public key blob, as it stands in an authorized_keys line
	namespace string
	hash      string
	kind      string // of the signature
	sig       []byte
	flags     byte
	counter   uint32
}

// parseSignature reads the armoured form. Every length is checked and nothing may
// be left over, so that no two texts are one signature.
func parseSignature(armoured string) (signature, error) {
	var s signature
	if len(armoured) > maxSSHSig {
		return s, errors.New("signature is too long")
	}
	body, ok := strings.CutPrefix(strings.TrimSpace(armoured), sshsigBegin)
	if ok {
		body, ok = strings.CutSuffix(body, sshsigEnd)
	}
	if !ok {
		return s, errors.New("not an SSH signature")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(body), "\r", ""), "\n", ""))
	if err != nil || !bytes.HasPrefix(raw, []byte(sshsigMagic)) {
		return s, errors.New("not an SSH signature")
	}
	w := wire{b: raw[len(sshsigMagic):]}
	if version := w.uint32(); version != 1 {
		return s, fmt.Errorf("SSH signature of version %d", version)
	}
	s.key = w.bytes()
	s.namespace = string(w.bytes())
	reserved := w.bytes()
	s.hash = string(w.bytes())
	inner := wire{b: w.bytes()}
	s.kind = string(inner.bytes())
	s.sig = inner.bytes()
	if s.kind == keyHardware {
		s.flags = inner.byte()
		s.counter = inner.uint32()
	}
	if w.bad || inner.bad || len(w.b) != 0 || len(inner.b) != 0 || len(reserved) != 0 {
		return s, errors.New("SSH signature is malformed")
	}
	return s, nil
}

// verify checks a signature over message by one of our keys, given as the blob of
// its authorized_keys line, under a namespace.
func (s *signature) verify(key []byte, namespace string, message []byte) error {
	if !bytes.Equal(s.key, key) {
		return errors.New("signed by another key")
	}
	if s.namespace != namespace {
		return fmt.Errorf("signed for %q, not for %q", s.namespace, namespace)
	}
	if s.hash != "sha512" {
		return fmt.Errorf("signed over a %q digest", s.hash)
	}
	digest := sha512.Sum512(message)
	signed := []byte(sshsigMagic)
	for _, part := range [...][]byte{[]byte(s.namespace), nil, []byte(s.hash), digest[:]} {
		signed = append(binary.BigEndian.AppendUint32(signed, uint32(len(part))), part...)
	}
	w := wire{b: key}
	kind, public := string(w.bytes()), w.bytes()
	switch {
	case w.bad || kind != s.kind || len(public) != ed25519.PublicKeySize:
		return errors.New("not an ed25519 key")
	case kind == keyHardware:
		application := w.bytes()
		if s.flags&flagPresent == 0 {
			return errors.New("signed without a touch of the security key")
		}
		app, inner := sha256.Sum256(application), sha256.Sum256(signed)
		signed = append(append([]byte(nil), app[:]...), s.flags)
		signed = append(binary.BigEndian.AppendUint32(signed, s.counter), inner[:]...)
	case kind != keyPlain:
		return fmt.Errorf("keys of type %q are not taken", kind)
	}
	if w.bad || len(w.b) != 0 || len(s.sig) != ed25519.SignatureSize || !ed25519.Verify(public, signed, s.sig) {
		return errors.New("the signature does not fit")
	}
	return nil
}

// hardware reports whether the key is held by a security key.
func (s *signature) hardware() bool { return s.kind == keyHardware }

// keyBlob reads the key of an authorized_keys line without options.
func keyBlob(line string) ([]byte, error) {
	fields := strings.Fields(line)
	if len(fields) < 2 || fields[0] != keyPlain && fields[0] != keyHardware {
		return nil, errors.New("not an ed25519 public key")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(fields[1])
	w := wire{b: raw}
	if err != nil || string(w.bytes()) != fields[0] || w.bad {
		return nil, errors.New("the public key is malformed")
	}
	return raw, nil
}

// wire reads SSH's length-prefixed fields; after the first bad one all are empty.
type wire struct {
	b   []byte
	bad bool
}

func (w *wire) take(n int) []byte {
	if w.bad || n < 0 || n > len(w.b) {
		w.bad = true
		return make([]byte, min(max(n, 0), 4))
	}
	out := w.b[:n]
	w.b = w.b[n:]
	return out
}

func (w *wire) byte() byte { return w.take(1)[0] }

func (w *wire) uint32() uint32 { return binary.BigEndian.Uint32(w.take(4)) }

func (w *wire) bytes() []byte {
	n := w.uint32()
	if w.bad || n > maxSSHSig {
		w.bad = true
		return nil
	}
	return w.take(int(n))
}
