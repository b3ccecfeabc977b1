package plan

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/gate"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
)

// wraps are the ways in which a text is handed to another shell, or to the same one once more. Q is
// the text as one word, T itself, B in base64, X as \x escapes.
var wraps = []string{
	"sh -c Q", "bash -c Q", "dash -c Q", "eval Q", "( T\n)", "{ T\n}", "f() { T\n}; f", "function g { T\n}; g", "if true; then T\nfi", "for i in 1; do T\ndone", "case x in x) T\n;; esac",
	"while T\ndo break; done", "until T\ndo break; done", "! { T\n}", "true && { T\n}", "echo \"$(T\n)\"", "X=Q; eval \"$X\"", "X=Q; sh -c \"$X\"", "X=Q; bash -c \"${X}\"", "export X=Q; bash -c 'eval \"$X\"'",
	"X=Q; Y=X; eval \"${!Y}\"", "a=(sh -c Q); \"${a[@]}\"", "a=(bash -c); a+=(Q); \"${a[@]}\"", "set -- Q; eval \"$1\"", "set -- sh -c Q; \"$@\"", "sh <<'EOF'\nT\nEOF\n", "bash <<-'EOF'\nT\nEOF\n", "bash <<< Q",
	"trap Q EXIT", "trap Q USR1 EXIT; true", "echo B | base64 -d | sh", "eval \"$(echo B | base64 -d)\"", "printf '%b' 'X' | sh", "eval $'X'", "bash -c $'X'", "printf '%s\\n' Q | sh", "printf '%s\\0' Q | xargs -0 sh -c",
	"printf '%s\\0' Q | xargs -0 -I{} bash -c {}", "find . -maxdepth 0 -exec sh -c Q \\;", "find README.md -exec bash -c Q {} +", "env sh -c Q", "env A=b bash -c Q", "env -S 'sh -c' Q", "nohup sh -c Q", "setsid sh -c Q", "setsid -w bash -c Q",
	"timeout 9 sh -c Q", "nice -n 1 sh -c Q", "stdbuf -o0 sh -c Q", "command sh -c Q", "builtin eval Q", "exec bash -c Q", "exec -a other sh -c Q", "read -r X <<< Q; eval \"$X\"", "printf '%s\\n' Q | while read -r l; do eval \"$l\"; done",
	"shopt -s expand_aliases\nalias al=Q\nal", "source <(printf '%s\\n' Q)", ". <(printf '%s\\n' Q)", "bash <(printf '%s\\n' Q)", "printf -v X %s Q; eval \"$X\"", "mapfile -t a <<< Q; eval \"${a[0]}\"", "(sleep 0; T\n) & wait", "coproc { T\n}; wait", "time { T\n}",
	"sh -c 'eval \"$1\"' x Q", "bash -c '\"$@\"' x sh -c Q", "sh -c \"sh -c $(printf %q Q)\"", "flock .lock sh -c Q", "x=sh; $x -c Q", "PS0= ; command eval Q", "declare X=Q; eval \"$X\"", "bash -O extglob -c Q", "bash -ec Q", "sh -c 'sh -c \"$0\"' Q",
}

// wrap puts a text into one of them.
func wrap(form, text string) string {
	var hex strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&hex, `\x%02x`, text[i])
	}
	// One pass: what is put in holds such letters itself.
	var b strings.Builder
	for i := range len(form) {
		alone := (i == 0 || !letter(form[i-1])) && (i+1 == len(form) || !letter(form[i+1]))
		switch c := form[i]; {
		case alone && c == 'Q':
			b.WriteString(quote.Words([]string{text}))
		case alone && c == 'T':
			b.WriteString(text)
		case alone && c == 'B':
			b.WriteString(base64.StdEncoding.EncodeToString([]byte(text)))
		case c == 'X' && i > 0 && i+1 < len(form) && form[i-1] == '\'' && form[i+1] == '\'':
			b.WriteString(hex.String())
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func letter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' }

// respelled writes the first word of a text in another way that means the same to a shell.
func respelled(r *rand.Rand, text string) string {
	end := strings.IndexFunc(text, func(c rune) bool { return c > 0x7f || !letter(byte(c)) && c != '-' })
	if end < 0 {
		end = len(text)
	}
	word, rest := text[:end], text[end:]
	if end < 2 || rest != "" && rest[0] != ' ' || slices.Contains(keywords, word) {
		return text
	}
	cut := 1 + r.IntN(len(word)-1)
	switch r.IntN(9) {
	case 0:
		return word[:cut] + `""` + word[cut:] + rest
	case 1:
		return `'` + word[:cut] + `'"` + word[cut:] + `"` + rest
	case 2:
		return `\` + word + rest
	case 3:
		return "V=" + word + "; $V" + rest
	case 4:
		return "$(echo " + word + ")" + rest
	case 5:
		return "V=" + word[:cut] + "; ${V}" + word[cut:] + rest
	case 6:
		return "${nothing:-" + word + "}" + rest
	case 7:
		return "$'" + fmt.Sprintf(`\x%02x`, word[0]) + word[1:] + "'" + rest
	}
	return "command " + word + rest
}

var keywords = []string{"if", "for", "while", "until", "case", "function", "select", "time", "coproc", "eval", "exec", "export", "set", "trap", "source", "declare", "local", "readonly", "alias", "shopt", "unset", "cd", "pushd", "command", "builtin", "read", "let", "then", "do"}

// mutant changes how a text is spelled and who reads it, up to three times.
func mutant(r *rand.Rand, text string) string {
	if r.IntN(3) == 0 {
		text = respelled(r, text)
	}
	for range 1 + r.IntN(3) {
		text = wrap(wraps[r.IntN(len(wraps))], text)
	}
	return text
}

// mutated runs one text as its decision lets it. What starts must be in the plan or decided when it
// starts, and none of the calls that are refused by themselves may happen.
func (o *oracle) mutated(text string, forbidden [][]string) (calls int, err error) {
	p, err := o.planned(text)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	allowed := p.Decision.Action == policy.Allow
	if !allowed && unread(p) {
		return 0, errUnfit // it asks, and does not say that it knows
	}
	var rules *gate.Rules
	var mu sync.Mutex
	var decided [][]string
	if p.Deferred {
		rules = judge(p)
		note := func(s gate.Start, v gate.Verdict) {
			mu.Lock()
			defer mu.Unlock()
			if v.Go && len(s.Argv) > 0 {
				decided = append(decided, append([]string{filepath.Base(s.Path)}, s.Argv[1:]...))
			}
		}
		known, decide := rules.Known, rules.Decide
		rules.Known = func(s gate.Start) (gate.Verdict, bool) {
			v, ok := known(s)
			note(s, v)
			return v, ok
		}
		rules.Decide = func(s gate.Start) gate.Verdict {
			v := decide(s)
			note(s, v)
			return v
		}
	}
	recorded, err := o.gated(p, p.Steps[0], rules)
	if err != nil {
		return 0, err
	}
	mu.Lock()
	defer mu.Unlock()
	switch {
	case p.Deferred:
		for _, call := range recorded {
			if !slices.ContainsFunc(decided, func(d []string) bool { return slices.Equal(d, call) }) {
				return len(recorded), fmt.Errorf("%q ran %s, which was not decided", text, quote.Words(call))
			}
		}
	case !unread(p):
		if err := o.listed(p, text, recorded); err != nil {
			return len(recorded), err
		}
	}
	runsCode := slices.ContainsFunc(p.Steps, func(s *step.Step) bool { return s.RunsCode != policy.CodeNone && !step.IsShell(s.ID.Effective) })
	if !allowed || runsCode {
		return len(recorded), nil // nothing starts; or what starts is held by the kernel
	}
	for _, call := range recorded {
		if slices.ContainsFunc(forbidden, func(f []string) bool { return slices.Equal(f, call) }) {
			return len(recorded), fmt.Errorf("%q is allowed and ran %s, which is not", text, quote.Words(call))
		}
	}
	return len(recorded), nil
}

// refused are the calls of a row that are refused by themselves: what it is labelled for.
func (o *oracle) refused(t testing.TB, text string) (out [][]string, err error) {
	if unfit(text) {
		return nil, errUnfit
	}
	p, err := o.planned(text)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if unread(p) {
		return nil, errUnfit
	}
	if p.Decision.Action == policy.Allow {
		return nil, nil
	}
	calls, err := o.run(p, p.Steps[0])
	if !o.whole(t) {
		t.Fatalf("%q destroyed the world", text)
	}
	for _, call := range calls {
		alone, err := o.batch.Plan(Invocation{Argv: call, Directory: o.w.Dir})
		if err == nil && alone.Decision.Action != policy.Allow {
			out = append(out, call)
		}
		if err == nil {
			alone.Close()
		}
	}
	return out, err
}

// worked is the processor time of this process and of what it has started and waited for.
func worked(t testing.TB) (sum time.Duration) {
	t.Helper()
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

// TestMutations runs rows of the corpus that were spelled in other ways, in the world of stubs: each start
// is in the plan or was decided when it happened, and no start that is refused by itself happens. A few
// mutants run always; MUTATE=10m is how much processor time to search for, with new ones each time.
func TestMutations(t *testing.T) {
	seed, lasts := uint64(13), time.Duration(0)
	if v := os.Getenv("MUTATE"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatal(err)
		}
		seed, lasts = uint64(time.Now().UnixNano()), d/2
	}
	if v := os.Getenv("MUTATE_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	r := rand.New(rand.NewPCG(seed, 0))
	all := readCorpus(t)
	for _, switches := range []string{"", `,"switches":{"defer":true}`} {
		o := newOracle(t)
		if switches != "" {
			dirs, err := o.batch.Machine.Dirs()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(dirs.Config, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dirs.Config, "policy.json"), []byte(`{"version":1`+switches+`}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		ran, calls, fit, began := 0, 0, 0, worked(t)
		for worked(t)-began < lasts || lasts == 0 && fit < 12 {
			row := &all[r.IntN(len(all))]
			if row.Cmd == nil || row.Cwd != "" || row.Tagged("device") || row.Tagged("system") || row.Tagged("forkbomb") || len(*row.Cmd) > 300 {
				continue
			}
			forbidden, err := o.refused(t, *row.Cmd)
			if err != nil {
				continue
			}
			fit++
			for range 3 {
				text := mutant(r, *row.Cmd)
				n, err := o.mutated(text, forbidden)
				if err == errUnfit {
					continue
				}
				if err != nil {
					t.Errorf("seed %d, %s %s: %v", seed, row.ID, switches, err)
				}
				ran++
				calls += n
				if !o.whole(t) {
					t.Fatalf("%s: %q destroyed the world: it started something that is no stub", row.ID, text)
				}
			}
		}
		t.Logf("seed %d%s: of %d rows %d mutants ran, %d calls were recorded, all in %v of processors", seed, switches, fit, ran, calls, (worked(t) - began).Round(time.Second))
		if ran == 0 || calls == 0 {
			t.Errorf("%d mutants ran and made %d calls", ran, calls)
		}
	}
}
