package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/policy"
)

func code(err error) string {
	var f *fault.Fault
	if errors.As(err, &f) {
		return f.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestBudgetWindow(t *testing.T) {
	b := policy.Budgets{Billable: policy.Budget{Set: true, Max: 2, Window: time.Hour}}
	l := ledger{Used: map[string][]use{}, Rates: map[string]*bucket{}}
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for i, row := range []struct {
		after     time.Duration
		permitted bool
		want      string
	}{
		{0, false, ""}, {time.Minute, false, ""}, {2 * time.Minute, false, "E2003"}, {2 * time.Minute, true, ""},
		{59 * time.Minute, false, "E2003"}, {-time.Hour, false, "E2003"}, {2 * time.Hour, false, ""},
	} {
		if got := code(l.charge(b, Cost{Billable: 1}, row.permitted, at.Add(row.after))); got != row.want {
			t.Errorf("call %d: %q, want %q", i, got, row.want)
		}
	}
	if got := code(l.charge(b, Cost{Remote: 9}, false, at)); got != "" {
		t.Errorf("what no budget limits: %q", got)
	}
}

func TestRate(t *testing.T) {
	b := policy.Budgets{Rate: map[string]string{"gh": "2/s"}}
	l := ledger{Used: map[string][]use{}, Rates: map[string]*bucket{}}
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for i, row := range []struct {
		tool  string
		after time.Duration
		want  string
	}{
		{"gh", 0, ""}, {"gh", 0, ""}, {"gh", 0, "E3201"}, {"git", 0, ""}, {"gh", 499 * time.Millisecond, "E3201"}, {"gh", 500 * time.Millisecond, ""},
		{"gh", -time.Hour, "E3201"}, {"gh", time.Hour, ""}, {"gh", time.Hour, ""}, {"gh", time.Hour, "E3201"},
	} {
		err := l.charge(b, Cost{Calls: map[string]int{row.tool: 1}}, false, at.Add(row.after))
		if got := code(err); got != row.want {
			t.Errorf("call %d: %q, want %q", i, got, row.want)
		}
		if f, ok := err.(*fault.Fault); ok && f.Details["retry_after_ms"].(int64) > 501 && row.after >= 0 {
			t.Errorf("call %d: told to wait %v ms", i, f.Details["retry_after_ms"])
		}
	}
}

// TestLedgerIsShared: of many at once exactly as many get through as the budget has.
func TestLedgerIsShared(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rate")
	b := policy.Budgets{Billable: policy.Budget{Set: true, Max: 5, Window: time.Hour}}
	var mu sync.Mutex
	through := 0
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			err := with(dir, func(l *ledger) error { return l.charge(b, Cost{Billable: 1}, false, time.Now()) })
			mu.Lock()
			defer mu.Unlock()
			switch code(err) {
			case "":
				through++
			case "E2003":
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if through != 5 {
		t.Errorf("%d got through", through)
	}
	// A ledger that cannot be read is no ledger full of room.
	if err := os.WriteFile(filepath.Join(dir, "ledger.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := with(dir, func(*ledger) error { return nil }); err == nil {
		t.Error("a torn ledger was taken")
	}
}

// TestDraw takes tokens by the file: as many as there are, none from a file that cannot be
// read, and one bucket for each name.
func TestDraw(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rate")
	draw := func(name string) bool {
		t.Helper()
		wait, err := Draw(dir, name, 3, 0.001)
		if err != nil {
			t.Fatal(err)
		}
		return wait == 0
	}
	var through atomic.Int32
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			if draw("a") {
				through.Add(1)
			}
		})
	}
	all.Wait()
	if through.Load() != 3 || !draw("b") {
		t.Errorf("%d got through", through.Load())
	}
	for name, raw := range map[string]string{"short": "x", "long": strings.Repeat("x", 40), "no number": strings.Repeat("\xff", 16), "too full": "\x00\x00\x00\x00\x00\x00\x59\x40\x01\x00\x00\x00\x00\x00\x00\x00"} {
		if err := os.WriteFile(bucketFile(dir, name), []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		if draw(name) {
			t.Errorf("%s: a token from a file that is no bucket", name)
		}
	}
}
