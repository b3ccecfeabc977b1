// Package request is what a run and its verifier say to each other: JSON lines, one question
// and one answer each, strict on both sides. trust.md section 7.
package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/signer"
)

// Limits of one conversation.
const (
	Version    = 1
	MaxLines   = 64
	MaxInput   = 8 << 20
	MaxOutput  = 256 << 10
	MaxBundle  = 1 << 20 // of one signature, also of each line of a .jsonl
	MaxSums    = 4 << 20
	MaxRoot    = 1 << 20
	MaxEntries = 32 // of a transparency log, in one bundle
	// Patience is how long one question may take; the verifier is killed after that, if the
	// machine let it run.
	Patience = 2 * time.Second
)

// Request is one question.
type Request struct {
	V       int       `json:"v"`
	ID      string    `json:"id"`
	Offline bool      `json:"offline,omitempty"`
	Now     time.Time `json:"now,omitzero"` // of tests; the zero time is the clock's

	Subject    Subject     `json:"subject"`
	Claims     Claims      `json:"claims,omitzero"`
	Signatures []Signature `json:"signatures,omitempty"`
	Provenance []Signature `json:"provenance,omitempty"`

	Signers []signer.Signer `json:"signers,omitempty"`
	// Filters are lists of layers that only tighten: a signer counts if each has it.
	Filters  [][]signer.Signer   `json:"filters,omitempty"`
	Builders []signer.Builder    `json:"builders,omitempty"`
	Revoked  []signer.Revocation `json:"revoked,omitempty"`
	Roots    []Root              `json:"roots,omitempty"`
	Require  Require             `json:"require,omitzero"`

	// Distro asks the database of the distribution about the file: "", "db" or "chain".
	Distro string `json:"distro,omitempty"`
}

// Subject is what is judged.
type Subject struct {
	Kind   string `json:"kind"` // tool, metadata
	Name   string `json:"name,omitempty"`
	Place  string `json:"place,omitempty"`
	SHA256 string `json:"sha256"`           // hex
	SHA512 string `json:"sha512,omitempty"` // hex
	// Path is read by kinds of signatures that need the bytes, and for sha512; Data holds them
	// where they are no file.
	Path string `json:"path,omitempty"`
	Data []byte `json:"data,omitempty"`
}

// Claims are what documents say about the subject. They can only refuse it.
type Claims struct {
	Checksum    string `json:"checksum,omitempty"`   // ALGORITHM:HEX of a tool
	BinaryHash  string `json:"binaryHash,omitempty"` // hex, of a document
	LookupKey   string `json:"lookupKey,omitempty"`  // hex, by which the document was found
	Type        string `json:"type,omitempty"`       // kind of signature that a document declares
	Provenance  bool   `json:"provenance,omitempty"` // it declares one
	SigConflict bool   `json:"sigConflict,omitempty"`
	Expected    bool   `json:"expected,omitempty"`
}

// Signature is a signature's bytes, or a path to them.
type Signature struct {
	Format string `json:"format,omitempty"` // auto, sigstore, cosign-legacy, openpgp, minisign, sums
	Data   []byte `json:"data,omitempty"`
	Line   int    `json:"line,omitempty"` // of a .jsonl, counted from 1; 0: all of them
	Hint   Hint   `json:"hint,omitzero"`
	// Sums is the signed list, if the signature is over one.
	Sums []byte `json:"sums,omitempty"`
}

// Hint is the signer that a document names: it must equal the proven one, and proves nothing.
type Hint struct {
	Identity string `json:"identity,omitempty"`
	Issuer   string `json:"issuer,omitempty"`
}

// Root is a trusted root. Without data it is the one inside the verifier.
type Root struct {
	Name    string    `json:"name"`
	Profile string    `json:"profile,omitempty"` // public-good, github, private
	Data    []byte    `json:"data,omitempty"`
	Fetched time.Time `json:"fetched,omitzero"`
	Managed bool      `json:"managed,omitempty"` // the administrator's or the embedded one
	// Shadowed marks a root whose name another one has that comes first: it counts for the
	// administrator's signers, who see no root of the user, and for nobody else.
	Shadowed bool `json:"shadowed,omitempty"`
}

// Require is what policy demands.
type Require struct {
	Signature        bool          `json:"signature,omitempty"`
	MinimumSLSALevel int           `json:"minimumSlsaLevel,omitempty"`
	PredicateType    string        `json:"predicateType,omitempty"`
	SourceRepository string        `json:"sourceRepository,omitempty"`
	MaxRootAge       time.Duration `json:"maxRootAge,omitempty"`
}

// Answer is what the verifier found. Level, Reason and Action repeat what trust.Decide
// makes of Settled: an answer in which they differ is not believed.
type Answer struct {
	V         int           `json:"v"`
	ID        string        `json:"id"`
	Subject   string        `json:"subject"`
	Level     string        `json:"level"`
	Reason    string        `json:"reason"`
	Stage     string        `json:"stage"`
	Action    string        `json:"action"`
	Cacheable bool          `json:"cacheable"`
	Verifier  string        `json:"verifier"` // its version
	Detail    string        `json:"detail,omitempty"`
	Settled   trust.Settled `json:"settled"`
}

// SubjectOf is the kind of subject.
func (r Request) SubjectOf() trust.Subject {
	if r.Subject.Kind == "metadata" {
		return trust.Metadata
	}
	return trust.Tool
}

// Policy is what of the request trust.Decide looks at.
func (r Request) Policy() trust.Policy {
	return trust.Policy{RequireTool: r.Require.Signature, RequireMetadata: r.Require.Signature, MinimumSLSALevel: r.Require.MinimumSLSALevel}
}

// Answered makes the answer out of what is settled.
func (r Request) Answered(s trust.Settled, detail, version string) Answer {
	v := trust.Decide(s.Facts(trust.Facts{Subject: r.SubjectOf()}), r.Policy())
	return Answer{V: Version, ID: r.ID, Subject: v.Subject.String(), Level: v.Level.String(), Reason: v.Reason, Stage: v.Stage, Action: v.Action.String(),
		Cacheable: s.Verify != trust.VerifyFailed, Verifier: version, Detail: detail, Settled: s}
}

// lineError says what is wrong with a line, counted from 1.
func lineError(line int, msg string) error {
	return &errcode.Error{Code: errcode.MetadataStructure, Msg: "verification request, line " + strconv.Itoa(line) + ": " + msg, Details: map[string]any{"line": line}}
}

// Read reads all questions.
func Read(in io.Reader) ([]Request, error) {
	raw, err := io.ReadAll(io.LimitReader(in, MaxInput+1))
	if err != nil {
		return nil, lineError(1, err.Error())
	}
	if len(raw) > MaxInput {
		return nil, lineError(1, "the requests have more than 8 MiB")
	}
	var list []Request
	line := 0
	for text := range bytes.Lines(raw) {
		line++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		if len(list) == MaxLines {
			return nil, lineError(line, "more than 64 requests")
		}
		var r Request
		if err := Strict(text, &r); err != nil {
			return nil, lineError(line, err.Error())
		}
		if why := r.invalid(); why != "" {
			return nil, lineError(line, why)
		}
		list = append(list, r)
	}
	if len(list) == 0 {
		return nil, lineError(1, "there is no request")
	}
	return list, nil
}

func (r Request) invalid() string {
	switch {
	case r.V != Version:
		return "v is not 1"
	case r.ID == "":
		return "id is missing"
	case r.Subject.Kind != "tool" && r.Subject.Kind != "metadata":
		return "subject.kind is neither tool nor metadata"
	case !IsSHA256(r.Subject.SHA256):
		return "subject.sha256 is not 64 hexadecimal digits"
	case len(r.Signatures) > MaxLines || len(r.Provenance) > MaxLines || len(r.Roots) > MaxLines:
		return "more than 64 signatures, provenances or roots"
	case r.Distro != "" && r.Distro != "db" && r.Distro != "chain":
		return "distro is neither db nor chain"
	}
	return ""
}

// IsSHA256 reports 64 lower-case hexadecimal digits.
func IsSHA256(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// Strict decodes one JSON value: no unknown field, nothing behind it.
func Strict(raw []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is something behind the object")
	}
	return nil
}

// Encode writes the questions as lines.
func Encode(list []Request) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for _, r := range list {
		if err := e.Encode(r); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// Answers reads what a verifier of this version said to these questions. Whatever is not
// exactly one fitting answer to each is an error.
func Answers(raw []byte, list []Request, version string) ([]Answer, error) {
	var out []Answer
	for text := range bytes.Lines(raw) {
		var a Answer
		if err := Strict(text, &a); err != nil {
			return nil, err
		}
		if len(out) == len(list) {
			return nil, errors.New("more answers than questions")
		}
		r := list[len(out)]
		want := r.Answered(a.Settled, a.Detail, version)
		want.Cacheable = a.Cacheable
		switch {
		case a.V != Version || a.ID != r.ID || a.Subject != r.SubjectOf().String():
			return nil, errors.New("an answer to another question")
		case a.Verifier != version:
			return nil, errors.New("the verifier has version " + a.Verifier + ", not " + version)
		case a.Level != want.Level || a.Reason != want.Reason || a.Action != want.Action:
			return nil, errors.New("an answer that contradicts itself")
		}
		out = append(out, a)
	}
	if len(out) != len(list) {
		return nil, errors.New("fewer answers than questions")
	}
	return out, nil
}
