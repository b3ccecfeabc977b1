package main_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// userPolicy writes the user's policy.
func (a asker) userPolicy(text string) {
	a.t.Helper()
	dir := filepath.Join(a.home, ".config/agent-tools")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "policy.json"), []byte(text), 0o644); err != nil {
		a.t.Fatal(err)
	}
}

// TestBudgetTwoAtOnce: what costs money runs as often as the budget says, also if all
// runs begin at once, and asks without a budget.
func TestBudgetTwoAtOnce(t *testing.T) {
	a := newAsker(t)
	raw, err := os.ReadFile(filepath.Join(a.home, "stubs", "gh"))
	if err != nil {
		t.Fatal(err)
	}
	// Of a program that nobody vouches for no harmless claim is believed.
	rule := fmt.Sprintf(`"rules":[{"id":"cs","decision":"allow","when":{"tool":"sha256:%x","command":["codespace create"],"host":["public"]},"grants":["network","remoteMutation","billable","irreversible","destructive","secretRead","privileged","persistence","execOpaque","write","delete"]}]`, sha256.Sum256(raw))
	args := []string{"--", "gh", "codespace", "create", "-R", "o/r"}
	a.userPolicy(`{"version":1,` + rule + `}`)
	if code, e := a.try(nil, args...); code != 77 || e.Code != "E2010" {
		t.Errorf("without a budget: exit %d: %s", code, e.text)
	}
	a.userPolicy(`{"version":1,"budgets":{"billable":{"max":1,"window":"24h"}},` + rule + `}`)
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[string]int{}
	for range 2 {
		wg.Go(func() {
			code, e := a.try(nil, args...)
			mu.Lock()
			defer mu.Unlock()
			got[fmt.Sprintf("%d %s", code, e.Code)]++
		})
	}
	wg.Wait()
	if got["0 "] != 1 || got["77 E2003"] != 1 || a.runs() != 1 {
		t.Errorf("%v, %d runs", got, a.runs())
	}
}

// TestBudgetOfRemoteChanges: what changes something remote runs as often as its budget says.
func TestBudgetOfRemoteChanges(t *testing.T) {
	a := newAsker(t)
	raw, err := os.ReadFile(filepath.Join(a.home, "stubs", "gh"))
	if err != nil {
		t.Fatal(err)
	}
	rule := fmt.Sprintf(`"trust":{"pins":{"gh":["sha256:%x"]}},"rules":[{"id":"pr","decision":"allow","when":{"tool":"gh","command":["pr create"]},"grants":["network","remoteMutation"]}]`, sha256.Sum256(raw))
	args := []string{"--", "gh", "pr", "create", "--fill"}
	a.userPolicy(`{"version":1,` + rule + `}`)
	for range 3 {
		if code, e := a.try(nil, args...); code != 0 {
			t.Fatalf("without a budget: exit %d: %s", code, e.text)
		}
	}
	a.userPolicy(`{"version":1,"budgets":{"remoteMutation":{"max":2,"window":"24h"}},` + rule + `}`)
	for i, want := range []int{0, 0, 77} {
		if code, e := a.try(nil, args...); code != want || (code == 77) != (e.Code == "E2003") {
			t.Errorf("call %d: exit %d: %s", i+1, code, e.text)
		}
	}
	if code, e := a.try(nil, "--", "gh", "pr", "list"); code != 0 {
		t.Errorf("what changes nothing: exit %d: %s", code, e.text)
	}
	cmd := exec.Command(filepath.Join(bin, "atip"), "audit", "show", "-o", "json")
	cmd.Env = []string{"HOME=" + a.home}
	log, err := cmd.Output()
	if n := strings.Count(string(log), `"budget":{"billable":0,"calls":{"gh":1},"remoteMutation":1}`); err != nil || n != 2 || !strings.Contains(string(log), `"enforce":{"delete":false,"files":true,"net":true,"secrets":true}`) {
		t.Errorf("%v: %d records say what was charged: %s", err, n, log)
	}
}

func TestRateIsSpent(t *testing.T) {
	a := newAsker(t)
	a.userPolicy(`{"version":1,"budgets":{"rate":{"ls":"2/h"}}}`)
	for i, want := range []int{0, 0, 75} {
		if code, e := a.try(nil, "--", "ls"); code != want || (code == 75) != (e.Code == "E3201" && strings.Contains(e.text, `"retry_after_ms":`)) {
			t.Errorf("call %d: exit %d: %s", i+1, code, e.text)
		}
	}
	if code, e := a.try(nil, "--", "true"); code != 0 {
		t.Errorf("another tool: exit %d: %s", code, e.text)
	}
}
