package policy

import "strconv"

func position(file string, line, col int) string {
	return file + ":" + strconv.Itoa(line) + ":" + strconv.Itoa(col)
}

// Document is one parsed policy document.
type Document struct {
	source Source
}

// Set is a compiled policy.
type Set struct{}

// Parse reads a document strictly: an unknown or repeated key is an error.
func Parse(src Source) (*Document, error) {
	return nil, &ParseError{Code: "E2040", File: src.File, Msg: "policies cannot be read by this build"}
}

// Builtin is the built-in policy, a document of the same language.
func Builtin() *Document { return &Document{source: Source{File: "builtin", Layer: LayerBuiltin}} }

// Compile merges the documents of all layers. The built-in document is added if
// it is not among them.
func Compile(docs []*Document) (*Set, error) { return &Set{}, nil }

// Decide judges a request.
func (s *Set) Decide(req Request) Decision { return Decision{} }

// CheckExamples runs the examples of the document's rules: resolve turns a shell
// string into the request it would make.
func (d *Document) CheckExamples(resolve func(cmd string) (Request, error)) error { return nil }

// HostUseOf classifies a host as it stands in a URL or an argument. Every spelling
// of an address is normalised first.
func HostUseOf(host string, port int) HostUse { return HostUse{Host: host, Port: port} }

// Warnings says what of the documents was ignored, and why.
func (s *Set) Warnings() []string { return nil }

// Digest identifies the documents of the set, independent of their order.
func (s *Set) Digest() string { return "" }

// Sandbox returns the merged sandbox object.
func (s *Set) Sandbox() SandboxPolicy { return SandboxPolicy{} }

// Output returns the merged output object.
func (s *Set) Output() OutputPolicy { return OutputPolicy{} }

// Env returns the merged env object.
func (s *Set) Env() EnvPolicy { return EnvPolicy{} }

// Limits returns the merged limits object.
func (s *Set) Limits() LimitsPolicy { return LimitsPolicy{} }

// Process returns the merged process object.
func (s *Set) Process() ProcessPolicy { return ProcessPolicy{} }

// Network returns the merged network object.
func (s *Set) Network() NetworkPolicy { return NetworkPolicy{} }

// Paths returns the merged paths object.
func (s *Set) Paths() PathsPolicy { return PathsPolicy{} }

// TrustPolicy returns the merged trust object.
func (s *Set) TrustPolicy() TrustPolicy { return TrustPolicy{} }

// Approval returns the merged approval object.
func (s *Set) Approval() ApprovalPolicy { return ApprovalPolicy{} }

// Profile names the profile in force.
func (s *Set) Profile() string { return "" }

// Switches returns the switches in force.
func (s *Set) Switches() []string { return nil }

// Sources lists the documents of the set, outermost layer first.
func (s *Set) Sources() []SourceInfo { return nil }

// SourceInfo identifies one document.
type SourceInfo struct {
	Layer  Layer  `json:"layer"`
	File   string `json:"file"`
	Digest string `json:"sha256"`
}
