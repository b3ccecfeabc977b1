package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProjectTrust: a project's policy loosens after a person has read it, and no
// longer when a byte of it changes; what it denies always holds.
func TestProjectTrust(t *testing.T) {
	a := newAsker(t)
	a.userPolicy(`{"version":1,"ceiling":{"allow":["write","delete","network","execOpaque"],"switches":["package_install","loopback","url_fetch"]}}`)
	file := filepath.Join(a.ws, ".agent-tools", "policy.json")
	put := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const policy = `{"version":1,"switches":{"url_fetch":true},"rules":[{"id":"no-ls","decision":"deny","when":{"tool":"ls"}}]}`
	fetch := []string{"--", "curl", "-sS", "https://host.invalid/"}
	// Of curl, by itself and through the proxy of the run.
	const couldNotResolve, proxyCouldNot = 6, 56
	expect := func(name string, fetched, listed int) {
		t.Helper()
		if code, e := a.try(nil, fetch...); code != fetched && (fetched != couldNotResolve || code != proxyCouldNot) {
			t.Errorf("%s: curl: exit %d, want %d: %s", name, code, fetched, e.text)
		}
		if code, e := a.try(nil, "--", "ls"); code != listed {
			t.Errorf("%s: ls: exit %d, want %d: %s", name, code, listed, e.text)
		}
	}
	expect("without a policy", 77, 0)
	put(policy)
	expect("not trusted", 77, 77)
	if code, out := a.person([][2]string{{"to trust them: ", "no"}}, "policy", "trust"); code != 77 {
		t.Fatalf("exit %d: %s", code, out)
	}
	expect("refused", 77, 77)
	code, out := a.person([][2]string{{"to trust them: ", "yes"}}, "policy", "trust")
	if code != 0 || !strings.Contains(out, "url_fetch") {
		t.Fatalf("exit %d: %s", code, out)
	}
	expect("trusted", couldNotResolve, 77)
	put(policy + "\n")
	expect("a byte more", 77, 77)
	put(policy)
	expect("as it was", couldNotResolve, 77)
	more := filepath.Join(a.ws, ".agent-tools", "policy", "more.json")
	below := filepath.Join(a.ws, "sub", ".agent-tools", "policy.json")
	for _, path := range []string{more, below} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(more, `{"version":1}`)
	expect("a file more", 77, 77)
	write(below, `{"version":1,"default":"deny"}`)
	if code, out := a.person([][2]string{{"to trust them: ", "yes"}}, "policy", "trust"); code != 0 || !strings.Contains(out, "more.json") || !strings.Contains(out, "sub/.agent-tools") {
		t.Fatalf("exit %d: %s", code, out)
	}
	expect("three files", couldNotResolve, 77)
	// A file of the project that is gone takes what it denied or asked with it: without a
	// person nothing is loosened then.
	for _, gone := range []struct{ name, path, text string }{
		{"one beside it is gone", more, `{"version":1}`},
		{"one of a directory below is gone", below, `{"version":1,"default":"deny"}`},
	} {
		if err := os.Remove(gone.path); err != nil {
			t.Fatal(err)
		}
		expect(gone.name, 77, 77)
		write(gone.path, gone.text)
		expect(gone.name+", and back", couldNotResolve, 77)
	}
	if err := os.RemoveAll(filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	expect("its own are gone", 77, 0)
}
