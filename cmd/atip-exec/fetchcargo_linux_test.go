package main_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// newCrates is a sparse registry of crates on the machine's loopback, with the crate two, whose build
// script speaks to it.
func newCrates(t *testing.T) *registry {
	t.Helper()
	crate := tarred(t, "two-1.0.0/", map[string]string{"Cargo.toml": "[package]\nname = \"two\"\nversion = \"1.0.0\"\nedition = \"2021\"\n", "src/lib.rs": "pub const TWO: u32 = 2;\n",
		"build.rs": "fn main() { let _ = std::process::Command::new(\"curl\").args([\"-s\", \"-m\", \"2\", &format!(\"{}/from-build\", std::env::var(\"REGISTRY\").unwrap())]).status(); }\n"})
	return serve(t, func(r *registry, w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/config.json":
			_ = json.NewEncoder(w).Encode(map[string]string{"dl": r.URL + "/dl/{crate}-{version}.crate"})
		case "/3/t/two":
			_, _ = fmt.Fprintf(w, `{"name":"two","vers":"1.0.0","deps":[],"cksum":"%x","features":{},"yanked":false}`, sha256.Sum256(crate))
		case "/dl/two-1.0.0.crate":
			_, _ = w.Write(crate)
		default:
			http.NotFound(w, q)
		}
	})
}

// TestFetchApartCargo: crates that Cargo.lock declares are fetched before the first build of a project and
// by cargo fetch, without a question. What the project or the cache of its workspace says of compilers,
// toolchains and registries counts only afterwards, without a host.
func TestFetchApartCargo(t *testing.T) {
	t.Parallel()
	needTier3(t)
	sysroot, err := exec.Command("rustc", "--print", "sysroot").Output()
	if err != nil {
		t.Skip("cargo is not installed")
	}
	w, r := newWorldAtHome(t), newCrates(t)
	w.policy(`{"version":1,"network":{"allow":["` + strings.TrimPrefix(r.URL, "http://") + `"]},"env":{"pass":["REGISTRY"]}}`)
	env := []string{"HOME=" + w.home, "PATH=" + filepath.Join(strings.TrimSpace(string(sysroot)), "bin") + ":/usr/local/bin:/usr/bin:/bin:" + bin, "REGISTRY=" + r.URL}
	start := startsIn(env)
	plain := func(dir string, words ...string) (string, error) {
		cmd := exec.Command("env", words...) // which looks in that PATH
		cmd.Dir = dir
		return start(cmd)
	}
	settings := "[source.crates-io]\nreplace-with = \"local\"\n\n[source.local]\nregistry = \"sparse+" + r.URL + "/\"\n"
	put(t, w.home, map[string]string{".cargo/config.toml": settings})
	project := map[string]string{"Cargo.toml": "[workspace]\nmembers = [\"app\"]\nresolver = \"2\"\n", "app/Cargo.toml": "[package]\nname = \"app\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\n[dependencies]\ntwo = \"1\"\n",
		"app/src/main.rs": "fn main() { println!(\"{}\", two::TWO + 40) }\n"}
	put(t, w.ws, project)
	if out, err := plain(w.ws, "cargo", "generate-lockfile"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	raw, err := os.ReadFile(w.ws + "/Cargo.lock")
	if err != nil {
		t.Fatal(err)
	}
	lock := string(raw)
	private := func() string {
		dirs, _ := filepath.Glob(w.home + "/.cache/atip-exec/ws/*")
		if len(dirs) != 1 {
			t.Fatalf("directories of workspaces: %v", dirs)
		}
		return dirs[0]
	}
	cold := func() {
		for _, dir := range []string{w.home + "/.cargo/registry", w.home + "/.cache", w.ws + "/target", w.ws + "/.cargo", w.ws + "/rust-toolchain.toml", w.ws + "/ran"} {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		put(t, w.ws, map[string]string{"Cargo.lock": lock})
		r.paths()
	}
	const crate = "/dl/two-1.0.0.crate"
	cold()
	out, err := start(w.command("-c", "cd app && cargo run -q"))
	if asked := r.paths(); err != nil || !strings.Contains(out, "42") || !slices.Contains(asked, crate) || slices.Contains(asked, "/from-build") {
		t.Fatalf("cargo run: %v, asked for %v\n%s", err, asked, out)
	}
	if out, err = start(w.command("--", "cargo", "check", "-q")); err != nil || len(r.paths()) != 0 {
		t.Errorf("cargo check fetches again: %v %s", err, out)
	}
	if out, err = start(w.command("-c", "cargo fetch --locked && cargo build -q")); err != nil {
		t.Errorf("cargo fetch: %v %s", err, out)
	}
	after, err := os.ReadFile(w.ws + "/Cargo.lock")
	if err != nil || string(after) != lock {
		t.Errorf("Cargo.lock has changed: %v %s", err, after)
	}
	// Each trap, in the project or in what a run can have written into the cache of its workspace.
	evil := "#!/bin/sh\ncurl -s -m 2 \"$REGISTRY/from-evil\"\n>" + w.ws + "/ran\nexit 1\n"
	put(t, w.ws, map[string]string{"evil/bin/cargo": evil, "evil/bin/rustc": evil})
	for _, path := range []string{"/evil/bin/cargo", "/evil/bin/rustc"} {
		if err := os.Chmod(w.ws+path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	rustc := w.ws + "/evil/bin/rustc"
	for name, text := range map[string]string{"rustc": "[build]\nrustc = \"" + rustc + "\"\n", "rustc-wrapper": "[build]\nrustc-wrapper = \"" + rustc + "\"\n",
		"credential helper": "[registry]\nglobal-credential-providers = [\"" + rustc + "\"]\n[build]\nrustc = \"" + rustc + "\"\n"} {
		cold()
		put(t, w.ws, map[string]string{".cargo/config.toml": text})
		out, err := start(w.command("--", "cargo", "build", "-q"))
		_, ran := os.Stat(w.ws + "/ran")
		if asked := r.paths(); err == nil || ran != nil || !slices.Contains(asked, crate) || slices.Contains(asked, "/from-evil") {
			t.Errorf("%s of the project: %v, ran %v, asked for %v\n%s", name, err, ran == nil, asked, out)
		}
		if out, err := plain(w.ws, "cargo", "fetch", "--locked"); !slices.Contains(r.paths(), "/from-evil") {
			t.Errorf("control of %s: %v %s", name, err, out)
		}
		cold()
		if out, err := start(w.command("--", "true")); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		put(t, private(), map[string]string{"cargo/config.toml": text, "cargo/config": text, "cargo-host/config.toml": text})
		out, err = start(w.command("--", "cargo", "fetch"))
		if asked := r.paths(); err != nil || !slices.Contains(asked, crate) || slices.Contains(asked, "/from-evil") {
			t.Errorf("%s of the cache: %v, asked for %v\n%s", name, err, asked, out)
		}
	}
	splitOrAsk(t, w.ws, []fetchRow{
		{"as it is", "Cargo.lock", lock, "cargo fetch", false},
		{"options that change nothing", "Cargo.lock", lock, "cargo fetch -q --locked", false},
		{"no lock", "Cargo.lock", "", "cargo fetch", true},
		{"a git dependency", "Cargo.lock", strings.Replace(lock, "registry+https://github.com/rust-lang/crates.io-index", "git+https://evil.example/x#0", 1), "cargo fetch", true},
		{"another registry", "Cargo.lock", strings.Replace(lock, "registry+https://github.com/rust-lang/crates.io-index", "sparse+https://evil.example/", 1), "cargo fetch", true},
		{"a source of the project", ".cargo/config.toml", settings, "cargo fetch", true},
		{"another manifest", "Cargo.lock", lock, "cargo fetch --manifest-path ../Cargo.toml", true},
		{"a setting in the words", "Cargo.lock", lock, "cargo fetch --config build.rustc=1", true},
		{"a lock that the string writes", "Cargo.lock", lock, "echo >Cargo.lock; cargo fetch", true},
		{"a crate in the words", "Cargo.lock", lock, "cargo add two", true},
		{"an installation", "Cargo.lock", lock, "cargo install two", true},
	}, cold, func(cmd string) (string, error) { return start(w.command("explain", "-o", "text", "-c", cmd)) })

	// Without the switch a build fetches nothing, and says what is missing.
	cold()
	w.policy(`{"version":1,"network":{"allow":["` + strings.TrimPrefix(r.URL, "http://") + `"]},"switches":{"declared_dependencies":false}}`)
	if out, err := start(w.command("--", "cargo", "build", "--offline")); err == nil || !strings.Contains(out, "two") || len(r.paths()) != 0 {
		t.Errorf("without the switch: %v %s", err, out)
	}
}
