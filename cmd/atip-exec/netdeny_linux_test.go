package main_test

import (
	"encoding/json"
	"testing"
)

// TestDeniedHostsOfAService: a tool's own service may be any host, so what network.deny names
// can be reached by it, and the receipt says so.
func TestDeniedHostsOfAService(t *testing.T) {
	w := newWorld(t)
	gaps := func(policy string) (n int) {
		t.Helper()
		w.policy(policy)
		out, err := w.command("explain", "--output", "json", "--", "git", "ls-remote", "origin").Output()
		var plan struct {
			Sandbox struct {
				Net  struct{ Mode string }
				Gaps []struct{ Guarantee string }
			}
		}
		if err != nil || json.Unmarshal(out, &plan) != nil || plan.Sandbox.Net.Mode != "full" {
			t.Fatalf("%v: %s", err, out)
		}
		for _, g := range plan.Sandbox.Gaps {
			if g.Guarantee == "net" {
				n++
			}
		}
		return n
	}
	if n := gaps(`{"version":1}`); n != 0 {
		t.Errorf("without network.deny: %d gaps of the network", n)
	}
	if n := gaps(`{"version":1,"network":{"deny":["denied.example"]}}`); n != 1 {
		t.Errorf("with network.deny: %d gaps of the network", n)
	}
}
