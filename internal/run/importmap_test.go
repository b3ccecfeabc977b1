package run

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/atip-dev/atip-exec"

// arrows is the import map of the project: package to what it may import of the
// module and of outside modules. A package that is not here fails the test, so
// that a new room is a decision, not an accident.
var arrows = map[string][]string{
	"atip":          {"internal/errcode", "internal/wildcard"},
	"shims":         {"internal/flock", "internal/newfile", "atip", "shims/builtin", "internal/owner", "internal/regular", "internal/errcode"},
	"shims/builtin": {"atip", "internal/wildcard"},
	"shims/remote":  {"internal/newfile", "atip", "shims", "trust", "trust/request", "trust/settle", "trust/signer", "internal/errcode", "internal/ip", "internal/regular"},
	"trust":         {"internal/owner", "internal/regular", "internal/errcode"},
	"trust/signer":  {"atip"},
	"trust/request": {"trust", "trust/signer", "internal/errcode"},
	"trust/settle":  {"atip", "shims", "trust", "trust/request", "trust/signer", "internal/errcode", "internal/owner", "internal/procstat", "internal/regular", "internal/excerpt"},
	// Only atip-verify links what is below: no other package may import it.
	"trust/sigstore": {"atip", "trust", "trust/request", "trust/signer", "github.com/sigstore/sigstore-go", "github.com/sigstore/sigstore", "github.com/sigstore/protobuf-specs", "google.golang.org/protobuf", "github.com/google/certificate-transparency-go", "github.com/digitorus/pkcs7", "github.com/digitorus/timestamp",
		"github.com/theupdateframework/go-tuf/v2"}, // the last one for the repositories of tests
	"trust/detached":        {"trust", "trust/request", "trust/signer", "github.com/ProtonMail/go-crypto", "aead.dev/minisign"},
	"trust/distro":          {"trust", "internal/regular"},
	"trust/verifier":        {"atip", "trust", "trust/detached", "trust/distro", "trust/request", "trust/sigstore", "internal/regular"},
	"policy":                {"atip", "trust/signer", "internal/ip", "internal/errcode", "internal/subpath", "internal/wildcard"},
	"sandbox":               {"internal/newfile", "atip", "sandbox/seccomp", "internal/gate", "internal/gitrepo", "internal/procstat", "internal/regular", "github.com/landlock-lsm/go-landlock", "internal/errcode", "internal/subpath"},
	"sandbox/seccomp":       {"internal/gate", "internal/errcode"},
	"filter":                {"internal/newfile", "internal/errcode"},
	"internal/redactcorpus": {"filter"},

	"internal/errcode":         {},
	"internal/newfile":         {},
	"internal/wildcard":        {},
	"internal/excerpt":         {},
	"internal/fault":           {"internal/errcode", "internal/marshal"},
	"internal/gate":            {"internal/procstat"},
	"internal/gitrepo":         {"internal/regular", "internal/subpath"},
	"internal/hostword":        {"internal/ip"},
	"internal/ip":              {},
	"internal/owner":           {},
	"internal/proxy":           {"internal/ip"},
	"internal/subpath":         {},
	"internal/tty":             {"internal/procstat", "github.com/creack/pty", "internal/errcode"},
	"internal/audit":           {"internal/errcode"},
	"internal/tmpshare":        {},
	"internal/report":          {"internal/audit"},
	"internal/approve":         {"internal/newfile", "internal/owner", "internal/regular", "internal/procstat", "internal/errcode"},
	"internal/place":           {"atip", "internal/owner", "internal/regular", "internal/errcode", "internal/subpath"},
	"internal/procstat":        {},
	"internal/regular":         {},
	"internal/built":           {}, // tests and measurements
	"internal/require":         {}, // tests only
	"internal/outside":         {"internal/place"},
	"internal/quote":           {},
	"internal/codefile":        {"atip", "internal/regular"},
	"internal/sshconfig":       {"internal/gitrepo", "internal/subpath"},
	"internal/pathrule":        {"policy", "internal/errcode", "internal/fault", "internal/regular", "internal/subpath"},
	"internal/memo":            {"policy", "shims", "trust"},
	"internal/prints":          {},
	"internal/shell/braces":    {"mvdan.cc/sh/v3"},
	"internal/shell/shelltext": {"mvdan.cc/sh/v3", "internal/errcode"},
	"internal/shell":           {"internal/shell/shelltext", "internal/prints", "internal/shell/braces", "internal/quote", "mvdan.cc/sh/v3", "internal/errcode"},
	"internal/recipe":          {"internal/subpath"},
	"internal/fetch":           {"atip", "internal/regular", "internal/subpath"},
	"internal/script":          {"internal/shell/shelltext", "internal/errcode", "internal/fault", "internal/quote", "internal/regular", "internal/shell", "internal/step", "internal/subpath"},
	"internal/step":            {"internal/shell/shelltext", "internal/prints", "atip", "internal/hostword", "internal/quote", "internal/shell", "internal/subpath", "policy", "trust"},
	"internal/effects":         {"internal/owner", "internal/memo", "internal/sshconfig", "internal/codefile", "internal/shell/shelltext", "internal/prints", "atip", "filter", "internal/errcode", "internal/fault", "internal/gitrepo", "internal/hostword", "internal/place", "internal/proxy", "internal/quote", "internal/recipe", "internal/regular", "internal/shell", "internal/step", "internal/subpath", "policy", "shims", "trust"},
	"internal/toollock":        {"atip", "shims", "trust", "internal/errcode", "internal/fault", "internal/place"},
	"internal/redact":          {"filter", "policy", "internal/drive", "internal/errcode", "internal/fault", "internal/regular"},
	"internal/status":          {"sandbox", "internal/errcode", "internal/fault", "internal/place", "internal/regular"},
	"internal/delegation":      {"internal/newfile", "internal/approve", "internal/owner", "internal/place", "internal/regular"},
	"internal/flock":           {},
	"internal/hugepage":        {"internal/standin"},
	"internal/idempotency":     {"internal/approve", "internal/errcode", "internal/fault", "internal/flock", "internal/regular"},
	"internal/layers":          {"policy", "internal/approve", "internal/errcode", "internal/fault", "internal/owner", "internal/place", "internal/regular"},
	"internal/marshal":         {},
	"internal/nest":            {"policy", "sandbox", "internal/audit", "internal/drive", "internal/errcode", "internal/fault", "internal/signals", "internal/standin", "internal/status"},
	"internal/signals":         {},
	"internal/standin":         {"internal/signals"},
	"internal/authority":       {"internal/memo", "atip", "filter", "internal/caller", "internal/effects", "internal/errcode", "internal/fault", "internal/outside", "internal/owner", "internal/place", "internal/toollock", "policy", "shims", "trust", "trust/settle", "trust/signer", "internal/step"},
	"internal/caller":          {"internal/delegation", "internal/errcode", "internal/fault", "internal/place", "internal/shell", "trust/settle"},
	"internal/cli":             {"internal/quote", "github.com/spf13/pflag", "atip", "internal/authority", "internal/batch", "internal/caller", "internal/errcode", "internal/excerpt", "internal/fault", "internal/idempotency", "internal/marshal", "internal/nest", "internal/outside", "internal/permit", "internal/plan", "internal/run", "internal/status", "internal/tty", "internal/wiring", "policy", "trust", "internal/step"},
	"internal/staging":         {"internal/quote", "internal/step", "internal/marshal", "atip", "internal/errcode", "internal/fault", "internal/gitrepo", "internal/plan", "internal/subpath", "internal/undo", "sandbox"},
	"internal/stdio":           {"atip", "filter", "internal/drive", "internal/errcode", "internal/fault", "internal/place", "internal/plan", "internal/regular", "internal/status", "internal/subpath", "internal/tty", "sandbox"},
	"internal/aftermath":       {"atip", "internal/approve", "internal/drive", "internal/ledger", "internal/plan", "internal/regular", "internal/subpath", "sandbox", "internal/step"},
	"internal/cleaning":        {"filter", "internal/caller", "internal/plan", "internal/redact"},
	"internal/record":          {"internal/marshal", "filter", "internal/cleaning", "internal/plan"},
	"internal/drive":           {"filter", "internal/proxy", "internal/signals", "internal/tty", "sandbox"},
	"internal/ledger":          {"internal/approve", "internal/errcode", "internal/fault", "internal/flock", "internal/regular", "policy"},
	"internal/batch":           {"internal/caller", "internal/errcode", "internal/fault", "internal/marshal", "internal/plan"},
	"internal/advice":          {"internal/quote", "atip", "internal/shell", "internal/subpath", "policy", "internal/step"},
	"internal/plan":            {"internal/memo", "internal/pathrule", "internal/shell/shelltext", "internal/quote", "atip", "filter", "internal/advice", "internal/approve", "internal/audit", "internal/authority", "internal/caller", "internal/delegation", "internal/effects", "internal/errcode", "internal/fault", "internal/fetch", "internal/gate", "internal/gitrepo", "internal/ip", "internal/layers", "internal/ledger", "internal/nest", "internal/place", "internal/procstat", "internal/proxy", "internal/redact", "internal/regular", "internal/script", "internal/shell", "internal/standin", "internal/status", "internal/subpath", "internal/tmpshare", "internal/toollock", "internal/tty", "internal/undo", "policy", "sandbox", "shims", "trust", "internal/step"},
	"internal/run":             {"internal/quote", "atip", "filter", "internal/aftermath", "internal/approve", "internal/audit", "internal/caller", "internal/cleaning", "internal/delegation", "internal/drive", "internal/errcode", "internal/fault", "internal/fetch", "internal/idempotency", "internal/ledger", "internal/marshal", "internal/nest", "internal/permit", "internal/plan", "internal/priming", "internal/record", "internal/regular", "internal/signals", "internal/staging", "internal/starts", "internal/status", "internal/stdio", "internal/subpath", "policy", "sandbox", "internal/step"},
	"internal/cli/answer":      {"internal/regular", "atip", "filter", "internal/authority", "internal/caller", "internal/cli", "internal/errcode", "internal/fault", "internal/place", "internal/plan", "internal/runfile", "internal/toollock", "internal/undo", "policy", "shims", "trust", "trust/settle"},
	"internal/cli/approvals":   {"internal/quote", "atip", "internal/approve", "internal/caller", "internal/cli", "internal/cli/answer", "internal/delegation", "internal/errcode", "internal/fault", "internal/outside", "internal/place", "internal/plan", "internal/tty", "policy"},
	"internal/cli/policies":    {"atip", "internal/approve", "internal/audit", "internal/caller", "internal/cli", "internal/cli/answer", "internal/cli/approvals", "internal/errcode", "internal/fault", "internal/layers", "internal/place", "internal/plan", "policy", "shims"},
	"internal/cli/audits":      {"internal/quote", "internal/audit", "internal/caller", "internal/cli", "internal/cli/answer", "internal/errcode", "internal/fault", "internal/plan", "internal/report", "internal/undo"},
	"internal/cli/completions": {"internal/quote", "atip", "internal/approve", "internal/cli", "internal/cli/answer", "internal/cli/approvals", "internal/errcode", "internal/fault", "internal/place", "internal/plan", "internal/runfile", "internal/undo", "sandbox", "shims"},
	"internal/cli/registries":  {"atip", "internal/authority", "internal/caller", "internal/cli", "internal/cli/answer", "internal/cli/approvals", "internal/crawl", "internal/errcode", "internal/fault", "internal/generate", "internal/place", "internal/plan", "internal/scan", "internal/toollock", "policy", "shims", "shims/remote", "trust", "trust/settle", "trust/signer"},
	"docs":                     {},
	"internal/cli/tools":       {"docs", "internal/quote", "atip", "filter", "internal/approve", "internal/audit", "internal/caller", "internal/cleaning", "internal/cli", "internal/cli/answer", "internal/cli/approvals", "internal/cli/audits", "internal/cli/completions", "internal/cli/policies", "internal/cli/registries", "internal/errcode", "internal/fault", "internal/install", "internal/mcp", "internal/place", "internal/plan", "internal/prime", "internal/priming", "internal/provider", "internal/redact", "internal/regular", "internal/runfile", "internal/scan", "internal/selftest", "internal/undo", "internal/wiring", "policy", "sandbox", "shims", "trust", "trust/settle", "trust/signer"},
	"internal/priming":         {"internal/quote", "internal/approve", "internal/caller", "internal/errcode", "internal/fault", "internal/flock", "internal/ledger", "internal/plan", "internal/prime", "internal/regular", "shims", "internal/step"},
	"internal/permit":          {"internal/quote", "internal/marshal", "atip", "internal/approve", "internal/errcode", "internal/fault", "internal/outside", "internal/plan", "internal/regular", "policy"},
	"internal/starts":          {"internal/quote", "internal/marshal", "internal/errcode", "internal/fault", "internal/gate", "internal/permit", "internal/place", "internal/plan", "internal/subpath", "policy"},
	"internal/cli/prove":       {"internal/regular", "internal/newfile", "atip", "internal/authority", "internal/caller", "internal/cli", "internal/errcode", "internal/fault", "internal/owner", "internal/place", "internal/plan", "sandbox", "shims", "trust", "trust/distro", "trust/request", "trust/settle", "trust/signer", "trust/sigstore", "trust/verifier"},
	"internal/corpus":          {"internal/quote", "internal/shell", "internal/subpath"},
	"internal/escape":          {},
	"internal/selftest":        {"sandbox", "internal/escape", "internal/procstat", "internal/proxy", "internal/errcode"},
	"internal/prime":           {"atip", "internal/errcode"},
	"internal/provider":        {"internal/errcode"},
	"internal/mcp":             {"internal/excerpt", "internal/fault", "github.com/modelcontextprotocol/go-sdk", "internal/errcode"},
	"internal/runfile":         {"internal/shell/shelltext", "internal/owner", "internal/regular", "internal/shell", "internal/errcode"},
	"internal/scan":            {"atip", "shims", "trust", "sandbox", "internal/owner", "internal/errcode", "internal/excerpt"},
	"internal/generate":        {"atip", "internal/regular"},
	"internal/archive":         {"github.com/klauspost/compress", "github.com/ulikunitz/xz", "internal/errcode", "internal/regular"},
	"internal/crawl":           {"atip", "shims", "shims/remote", "internal/archive", "internal/generate", "go.yaml.in/yaml/v3", "internal/errcode"},

	"cmd/atip-exec":   {"internal/cli", "internal/drive", "internal/hugepage", "sandbox"},
	"cmd/atip-verify": {"internal/cli/prove", "sandbox"},
	"cmd/atip":        {"internal/cli", "internal/cli/tools", "internal/hugepage", "sandbox"},

	"internal/jsonedit": {},
	"internal/wiring":   {"atip", "internal/errcode"},
	"internal/install":  {"internal/flock", "internal/owner", "internal/newfile", "internal/errcode", "internal/jsonedit", "internal/place", "internal/regular", "internal/wiring"},
	"internal/undo":     {"internal/errcode", "internal/subpath"},

	"scripts/day":                 {"internal/built"},
	"scripts/docgen":              {"internal/cli"},
	"scripts/filterscore":         {"filter", "internal/redactcorpus"},
	"scripts/peerbench":           {"internal/corpus"},
	"scripts/startbench":          {},
	"scripts/startbench/goexec":   {},
	"scripts/startbench/composed": {"sandbox"},
	"scripts/startbench/ownfloor": {},
	"scripts/readers":             {"internal/caller", "internal/corpus", "internal/plan"},
	"scripts/reportlook":          {"internal/audit"},
	"scripts/rulegen":             {"filter"},
	"shims/builtin/gen":           {"atip", "shims/builtin"},
}

// standard counts as the standard library: the arrow needs no importer of its own.
const standard = "golang.org/x/sys"

// testOnly may be imported by tests of any package.
var testOnly = []string{"github.com/google/jsonschema-go", "github.com/rogpeppe/go-internal", "go.yaml.in/yaml/v3"}

func TestImportArrows(t *testing.T) {
	root := filepath.Join("..", "..")
	importers := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			// A folder with its own go.mod is another module with its own rules.
			if _, err := os.Stat(filepath.Join(path, "go.mod")); (err == nil && path != root) || d.Name() == "testdata" || d.Name() == "vendor" || (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, filepath.Dir(path))
		pkg, isTest := filepath.ToSlash(rel), strings.HasSuffix(path, "_test.go")
		allowed, known := arrows[pkg]
		if !known {
			t.Errorf("%s: package %q is not in the import map", path, pkg)
			return nil
		}
		for _, spec := range f.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			to := strings.TrimPrefix(imported, module+"/")
			outside := to == imported
			if outside && !strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") || hasPrefix(imported, standard) {
				continue
			}
			if isTest && (to == pkg || matches(imported, testOnly) || !outside) {
				continue
			}
			if outside {
				if importers[imported] == nil {
					importers[imported] = map[string]bool{}
				}
				importers[imported][pkg] = true
			}
			if !matches(to, allowed) {
				t.Errorf("%s: the arrow %s -> %s is not in the import map", path, pkg, to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for outside, pkgs := range importers {
		// A package and those below it are one importer: what it reads has one form in all of them.
		maps.DeleteFunc(pkgs, func(pkg string, _ bool) bool { return pkgs[filepath.Dir(pkg)] })
		if len(pkgs) > 1 {
			t.Errorf("%s has more than one importer: %v", outside, pkgs)
		}
	}
}

func hasPrefix(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

func matches(path string, allowed []string) bool {
	for _, a := range allowed {
		if path == a || (strings.Contains(a, ".") && hasPrefix(path, a)) {
			return true
		}
	}
	return false
}

// linked is every outside package linked into cmd/atip-exec; each is paid by
// every command a user ever runs.
var linked = []string{
	"github.com/creack/pty",
	"github.com/landlock-lsm/go-landlock/landlock/syscall",
	"github.com/spf13/pflag",
	"golang.org/x/sys/unix",
	"kernel.org/pub/linux/libs/security/libcap/psx",
	"mvdan.cc/sh/v3/fileutil",
	"mvdan.cc/sh/v3/syntax",
}

// heavy standard packages cost start-up time or bring a network stack.
var heavy = []string{"net", "net/http", "crypto/tls", "crypto/x509", "text/template", "html/template", "log/slog", "testing", "flag"}

// costly is what an outside package brings nevertheless: pflag has flags of type net.IP.
var costly = map[string][]string{"github.com/spf13/pflag": {"net", "flag"}}

func TestLinkedPackages(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}} {{.Standard}} {{join .Imports " "}}`, module+"/cmd/atip-exec")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		words := strings.Fields(line)
		path := words[0]
		if words[1] == "true" {
			continue
		}
		if !hasPrefix(path, module) && !matches(path, linked) {
			t.Errorf("cmd/atip-exec links %s, which is not in the list", path)
		}
		for _, imported := range words[2:] {
			if matches(imported, heavy) && !matches(imported, costly[path]) {
				t.Errorf("cmd/atip-exec links %s by %s: every command would pay for it", imported, path)
			}
		}
	}
}

// TestDependenciesAreListed: docs/dependencies.md names the modules that each program links, in
// the versions of go.mod, beyond those of the programs before it.
func TestDependenciesAreListed(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]bool{}
	for _, program := range []string{"atip-exec", "atip", "atip-verify"} {
		_, section, ok := strings.Cut(string(raw), "\n## "+program+"\n")
		if !ok {
			t.Fatalf("there is no section on %s", program)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		listed := map[string]bool{}
		for _, line := range strings.Split(section, "\n") {
			if words := strings.Fields(strings.TrimSuffix(line, ",")); len(words) == 2 && strings.HasPrefix(words[1], "v") {
				listed[words[0]+" "+words[1]] = true
			}
		}
		cmd := exec.Command("go", "list", "-deps", "-f", `{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}`, module+"/cmd/"+program)
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		linked := map[string]bool{}
		for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
			if line != "" && !before[line] {
				linked[line] = true
			}
		}
		for one := range linked {
			if before[one] = true; !listed[one] {
				t.Errorf("%s links %s, which docs/dependencies.md does not list", program, one)
			}
		}
		for one := range listed {
			if !linked[one] {
				t.Errorf("docs/dependencies.md lists %s, which %s does not link beyond the others", one, program)
			}
		}
		if count := ": " + strconv.Itoa(len(linked)) + " modules."; !strings.Contains(section, count) {
			t.Errorf("the section on %s does not say%s", program, count)
		}
	}
}
