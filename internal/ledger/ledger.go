// Package ledger keeps what the runs of a user have used up of the budgets and the rates of their
// policy.
package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/flock"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/policy"
)

// spans is into how many parts the window of a budget is cut: what was used is counted
// per part and forgotten when the whole part lies behind the window.
const spans = 100

// ledger is the file.
type ledger struct {
	V     int                `json:"v"`
	Used  map[string][]use   `json:"used"`  // billable, remoteMutation
	Rates map[string]*bucket `json:"rates"` // by tool
}

// use is a number of calls in one part of a window.
type use struct {
	Until int64 `json:"until"` // ms: counts up to here
	N     int   `json:"n"`
}

// bucket is a token bucket, as it was at a time.
type bucket struct {
	Tokens float64 `json:"tokens"`
	At     int64   `json:"at"`
}

// Cost is what a run takes from the budgets.
type Cost struct {
	Billable, Remote int
	Calls            map[string]int // by tool
}

// Limited reports whether the budgets limit anything of a cost.
func (c Cost) Limited(b policy.Budgets) bool {
	limited := b.Billable.Set && c.Billable > 0 || b.RemoteMutation.Set && c.Remote > 0
	for tool := range c.Calls {
		limited = limited || b.Rate[tool] != ""
	}
	return limited
}

// Charge takes a cost from the budgets: all of it or nothing. What a person permitted is
// counted and not refused.
func Charge(dir string, b policy.Budgets, c Cost, permitted bool) error {
	return with(dir, func(l *ledger) error { return l.charge(b, c, permitted, time.Now()) })
}

// Draw takes one token from the bucket of this name, which fills by so many a second, or says
// how long to wait for it. The bucket is a file of its own, 16 bytes that are written in place:
// the ledger of the budgets is brought to the disk at each change, which takes a millisecond.
func Draw(dir, name string, capacity, perSecond float64) (wait time.Duration, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	f, err := os.OpenFile(bucketFile(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close() // which unlocks
	if err := flock.Exclusive(f); err != nil {
		return 0, err
	}
	raw := make([]byte, 17)
	n, err := f.ReadAt(raw, 0)
	if err != nil && err != io.EOF {
		return 0, err
	}
	now := time.Now()
	state, wait := readBucket(raw[:n], capacity, now).draw(capacity, perSecond, 1, now)
	if wait > 0 {
		return wait, nil
	}
	_, err = f.WriteAt(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, math.Float64bits(state.Tokens)), uint64(state.At)), 0)
	return 0, err
}

func bucketFile(dir, name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(dir, "bucket-"+hex.EncodeToString(sum[:16]))
}

// readBucket reads a bucket; nil is a new one. One that cannot be read is empty.
func readBucket(raw []byte, capacity float64, now time.Time) *bucket {
	if len(raw) == 0 {
		return nil
	}
	b := &bucket{At: now.UnixMilli()}
	if len(raw) == 16 {
		tokens, at := math.Float64frombits(binary.LittleEndian.Uint64(raw)), int64(binary.LittleEndian.Uint64(raw[8:]))
		// A time to come is that of a clock that was set back.
		if tokens >= 0 && tokens <= capacity && at > 0 && at <= b.At {
			b.Tokens, b.At = tokens, at
		}
	}
	return b
}

// charge books the cost, or says what is spent and books nothing.
func (l *ledger) charge(b policy.Budgets, c Cost, permitted bool, now time.Time) error {
	for _, row := range [...]struct {
		name   string
		budget policy.Budget
		n      int
	}{{"billable", b.Billable, c.Billable}, {"remoteMutation", b.RemoteMutation, c.Remote}} {
		if !row.budget.Set || row.n == 0 || permitted {
			continue
		}
		if used := l.used(row.name, now); used+row.n > row.budget.Max {
			return fault.New(errcode.Budget, fmt.Sprintf("the budget for %s calls is spent: %d of %d in %s used, %d more wanted", row.name, used, row.budget.Max, window(row.budget), row.n)).
				With("budget", row.name).With("max", row.budget.Max).With("used", used)
		}
	}
	taken := map[string]bucket{}
	for tool, n := range c.Calls {
		rate := b.Rate[tool]
		if rate == "" {
			continue
		}
		state, wait := l.Rates[tool].take(rate, n, now)
		if wait > 0 {
			return fault.New(errcode.RateLimit, fmt.Sprintf("%s may be called %s times only: wait %s", tool, strings.Replace(rate, "/", " per ", 1), wait.Round(time.Millisecond))).
				With("tool", tool).With("rate", rate).With("retry_after_ms", wait.Milliseconds()+1)
		}
		taken[tool] = state
	}
	for tool, state := range taken {
		l.Rates[tool] = &state
	}
	l.book("billable", b.Billable, c.Billable, now)
	l.book("remoteMutation", b.RemoteMutation, c.Remote, now)
	return nil
}

// used counts what still lies within the window. What lies in the future counts: a
// clock that was set back must not make room.
func (l *ledger) used(name string, now time.Time) int {
	n := 0
	for _, u := range l.Used[name] {
		if u.Until > now.UnixMilli() {
			n += u.N
		}
	}
	return n
}

func (l *ledger) book(name string, b policy.Budget, n int, now time.Time) {
	if !b.Set || n == 0 {
		return
	}
	kept := l.Used[name][:0]
	for _, u := range l.Used[name] {
		if u.Until > now.UnixMilli() {
			kept = append(kept, u)
		}
	}
	span := max(window(b).Milliseconds()/spans, 1)
	until := (now.UnixMilli()/span + 1 + spans) * span
	if last := len(kept) - 1; last >= 0 && kept[last].Until == until {
		kept[last].N += n
	} else {
		kept = append(kept, use{until, n})
	}
	l.Used[name] = kept
}

// window is the length of a budget's window; one without is for good, as far as ten
// years are.
func window(b policy.Budget) time.Duration {
	if b.Window == 0 {
		return 10 * 365 * 24 * time.Hour
	}
	return b.Window
}

// take draws n tokens from a bucket that holds one period's worth, or says how long
// to wait for them.
func (b *bucket) take(rate string, n int, now time.Time) (bucket, time.Duration) {
	number, unit, _ := strings.Cut(rate, "/")
	limit, err := strconv.ParseFloat(number, 64)
	period := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[unit]
	if err != nil || limit < 1 || period == 0 {
		return bucket{}, time.Hour // the parser refuses such a rate
	}
	return b.draw(limit, limit/period.Seconds(), n, now)
}

// draw takes n tokens from a bucket of a capacity that fills by so many a second.
func (b *bucket) draw(capacity, perSecond float64, n int, now time.Time) (bucket, time.Duration) {
	state := bucket{Tokens: capacity, At: now.UnixMilli()}
	if b != nil {
		passed := max(now.UnixMilli()-b.At, 0)
		state.Tokens = math.Min(capacity, b.Tokens+perSecond*float64(passed)/1000)
	}
	if want := math.Min(float64(n), capacity); state.Tokens < want {
		return state, max(time.Duration((want-state.Tokens)/perSecond*float64(time.Second)), time.Millisecond)
	}
	state.Tokens -= float64(n)
	return state, 0
}

// with reads the ledger, lets f change it and writes it back, under a lock that
// all runs share.
func with(dir string, f func(*ledger) error) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // which unlocks
	if err := flock.Exclusive(lock); err != nil {
		return err
	}
	path := filepath.Join(dir, "ledger.json")
	l := ledger{V: 1}
	if old, err := regular.Read(path, 1<<20); err == nil {
		if err := json.Unmarshal(old, &l); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	} else if !os.IsNotExist(err) {
		return err
	}
	if l.Used == nil {
		l.Used = map[string][]use{}
	}
	if l.Rates == nil {
		l.Rates = map[string]*bucket{}
	}
	if err := f(&l); err != nil {
		return err
	}
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return approve.Replace(path, raw)
}
