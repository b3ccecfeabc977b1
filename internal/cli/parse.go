package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/fault"
)

// maxTimeout is the longest duration a flag accepts.
const maxTimeout = 24 * time.Hour

// Values holds what the flags of one command line said; the last one wins.
type Values struct {
	set   map[string][]string
	Rest  []string // the command, or the words of a verb
	Dash  bool     // a "--" ended the flags
	Given bool     // at least one word or "--" stood right of the flags
}

// Has reports whether the flag was given, in the environment too.
func (v *Values) Has(name string) bool { return len(v.set[name]) > 0 }

// Get returns the last value, "" if none.
func (v *Values) Get(name string) string {
	if all := v.set[name]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// All returns every value of a Strings flag.
func (v *Values) All(name string) []string { return v.set[name] }

// CountOf returns how often a Count flag was given.
func (v *Values) CountOf(name string) int { return len(v.set[name]) }

// DurationOf returns the value of a Duration flag, 0 if none.
func (v *Values) DurationOf(name string) time.Duration {
	d, _ := ParseDuration(v.Get(name))
	return d
}

// SizeOf returns the value of a Size flag in bytes, 0 if none.
func (v *Values) SizeOf(name string) int64 {
	n, _ := ParseSize(v.Get(name))
	return n
}

// IntOf returns the value of an Int flag, 0 if none.
func (v *Values) IntOf(name string) int {
	n, _ := strconv.Atoi(v.Get(name))
	return n
}

// Parse reads args by the flags of spec. Where spec.Stops is set the first word
// that is not a flag ends them; elsewhere flags may stand anywhere. There are no
// abbreviations, so that a new flag never changes what an old line means.
func Parse(spec Spec, args []string, getenv func(string) string) (*Values, error) {
	v := &Values{set: map[string][]string{}}
	for i := 0; i < len(args); i++ {
		word := args[i]
		switch {
		case word == "--":
			v.Rest, v.Dash, v.Given = append(v.Rest, args[i+1:]...), true, true
			return v, v.fromEnv(spec, getenv)
		case len(word) < 2 || word[0] != '-':
			v.Given = true
			if spec.Stops {
				v.Rest = args[i:]
				return v, v.fromEnv(spec, getenv)
			}
			v.Rest = append(v.Rest, word)
		case word[1] == '-':
			name, value, attached := strings.Cut(word[2:], "=")
			used, err := v.add(spec, findLong(spec, name), "--"+name, value, attached, args[i+1:])
			if err != nil {
				return nil, err
			}
			i += used
		default:
			used, err := v.cluster(spec, word, args[i+1:])
			if err != nil {
				return nil, err
			}
			i += used
		}
		// -c ends our flags: the words right of its string are $0, $1 and so on.
		if v.Has("command") && spec.Stops {
			v.Rest, v.Given = args[i+1:], true
			return v, v.fromEnv(spec, getenv)
		}
	}
	return v, v.fromEnv(spec, getenv)
}

// cluster reads "-qv" and "-ofoo"; it returns how many following words it used.
func (v *Values) cluster(spec Spec, word string, next []string) (int, error) {
	for i := 1; i < len(word); i++ {
		f := findShort(spec, word[i])
		shown := "-" + word[i:i+1]
		if f != nil && !f.takesValue() {
			if _, err := v.add(spec, f, shown, "", false, nil); err != nil {
				return 0, err
			}
			continue
		}
		rest := word[i+1:]
		return v.add(spec, f, shown, strings.TrimPrefix(rest, "="), rest != "", next)
	}
	return 0, nil
}

func (v *Values) add(spec Spec, f *Flag, shown, value string, attached bool, next []string) (int, error) {
	if f == nil {
		return 0, unknownFlag(spec, shown)
	}
	if !f.takesValue() {
		if attached {
			return 0, fault.New("E1002", shown+" takes no value").With("flag", shown)
		}
		v.set[f.Name] = append(v.set[f.Name], "true")
		return 0, nil
	}
	used := 0
	if !attached {
		if len(next) == 0 {
			return 0, fault.New("E1002", shown+" needs a value").With("flag", shown).WithFix("write "+shown+" "+f.Value, "")
		}
		value, used = next[0], 1
	}
	if err := f.check(shown, value); err != nil {
		return 0, err
	}
	v.set[f.Name] = append(v.set[f.Name], value)
	return used, nil
}

// fromEnv gives flags that were not typed the value of their variable.
func (v *Values) fromEnv(spec Spec, getenv func(string) string) error {
	for _, f := range spec.Flags {
		if f.Env == "" {
			continue
		}
		value := getenv(f.Env)
		if value == "" || (v.Has(f.Name) && f.Kind != Strings) {
			continue
		}
		if err := f.check("$"+f.Env, value); err != nil {
			return err
		}
		v.set[f.Name] = append(v.set[f.Name], value)
	}
	return nil
}

func (f *Flag) takesValue() bool { return f.Kind != Bool && f.Kind != Count }

func (f *Flag) check(shown, value string) error {
	bad := func(what, fix, example string) error {
		return fault.New("E1002", fmt.Sprintf("%s: %q %s", shown, value, what)).With("flag", shown).WithFix(fix, example)
	}
	switch f.Kind {
	case Enum:
		for _, allowed := range f.Enum {
			if value == allowed {
				return nil
			}
		}
		return bad("is not one of "+strings.Join(f.Enum, ", "), "choose one of them", shown+" "+f.Enum[0])
	case Int:
		if n, err := strconv.Atoi(value); err != nil || n < f.Minimum {
			return bad(fmt.Sprintf("is not a number of at least %d", f.Minimum), "write a number", fmt.Sprintf("%s %d", shown, f.Minimum))
		}
	case Duration:
		if value == "declared" && f.Name == "timeout" {
			return nil
		}
		if _, err := ParseDuration(value); err != nil {
			return bad(err.Error(), "write a number and a unit", shown+" 5m")
		}
	case Size:
		if _, err := ParseSize(value); err != nil {
			return bad(err.Error(), "write a number of bytes, or one with KiB, MiB or GiB", shown+" 64KiB")
		}
	case Path:
		if value == "" {
			return bad("is not a path", "name a file or directory", "")
		}
	}
	return nil
}

// ParseDuration reads seconds ("90", "1.5") or a number with ms, s, m or h; more
// than 0 and at most 24 hours.
func ParseDuration(text string) (time.Duration, error) {
	unit, number := time.Second, text
	for _, u := range []struct {
		suffix string
		unit   time.Duration
	}{{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}} {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			unit, number = u.unit, rest
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || strings.ContainsAny(number, "xXeEpPnNiI_") {
		return 0, fmt.Errorf("is not a duration")
	}
	// Compared as float first: a huge number must not wrap around in the conversion.
	if n*float64(unit) > float64(maxTimeout) {
		return 0, fmt.Errorf("is longer than 24h")
	}
	d := time.Duration(n * float64(unit))
	if d <= 0 {
		return 0, fmt.Errorf("is not more than zero")
	}
	return d, nil
}

// ParseSize reads a number of bytes ("65536") or one with KiB, MiB or GiB; more than 0 and
// at most 1024 GiB.
func ParseSize(text string) (int64, error) {
	number, unit := text, int64(1)
	for _, u := range [...]struct {
		suffix string
		unit   int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}} {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			number, unit = rest, u.unit
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > 1<<40/unit || number[0] == '+' {
		return 0, fmt.Errorf("is not a size")
	}
	return n * unit, nil
}

func findLong(spec Spec, name string) *Flag {
	for i := range spec.Flags {
		if spec.Flags[i].Name == name {
			return &spec.Flags[i]
		}
	}
	return nil
}

func findShort(spec Spec, short byte) *Flag {
	for i := range spec.Flags {
		if spec.Flags[i].Short == short {
			return &spec.Flags[i]
		}
	}
	return nil
}

func unknownFlag(spec Spec, shown string) error {
	f := fault.New("E1001", "unknown flag "+shown).With("flag", shown)
	best, bestDistance := "", 3
	for _, known := range spec.Flags {
		if d := distance(strings.TrimLeft(shown, "-"), known.Name); d < bestDistance {
			best, bestDistance = known.Name, d
		}
	}
	if best != "" {
		return f.WithFix("did you mean --"+best+"?", "--"+best)
	}
	return f
}

// distance is the Levenshtein distance of two short words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, cost)
		}
	}
	return row[len(b)]
}
