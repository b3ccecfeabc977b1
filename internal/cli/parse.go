package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
)

// maxTimeout is the longest duration a flag accepts.
const maxTimeout = 24 * time.Hour

// Values holds what the flags of one command line said; the last one wins.
type Values struct {
	set  map[string][]string
	Rest []string // the command, or the words of a verb
	Dash bool     // a "--" ended the flags

	newest bool
}

// Newest reports whether the lists of the verb are in the order of time, so that their last
// items are those to keep.
func (v *Values) Newest() bool { return v.newest }

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
	v, err := parse(spec, args)
	if err == errCommandString {
		// The words right of the string of -c are $0, $1 and so on. pflag does not say where
		// it stopped: the string ends the shortest part of the line that has one.
		n := 1
		for err = nil; err != errCommandString; n++ {
			v, err = parse(spec, args[:n])
		}
		v.Rest, err = args[n-1:], nil
	}
	if err != nil {
		return nil, usageError(spec, err)
	}
	if err := spec.lists(v); err != nil {
		return nil, err
	}
	return v, v.fromEnv(spec, getenv)
}

// lists refuses the flags that shorten a list on a call that prints none.
func (s Spec) lists(v *Values) error {
	v.newest = s.Newest
	if len(s.Lists) == 0 || !v.Has("fields") && !v.Has("max-items") {
		return nil
	}
	flag := "--max-items"
	if v.Has("fields") {
		flag = "--fields"
	}
	for _, call := range s.Lists {
		words := strings.Fields(call)
		switch {
		case strings.HasPrefix(call, "--"):
			if v.Has(call[2:]) {
				return nil
			}
		case len(words) > 0 && words[len(words)-1] == "*":
			if words = words[:len(words)-1]; len(v.Rest) >= len(words) && slices.Equal(v.Rest[:len(words)], words) {
				return nil
			}
		case slices.Equal(v.Rest, words):
			return nil
		}
	}
	var calls []string
	for _, call := range s.Lists {
		calls = append(calls, strings.TrimSpace("atip "+s.Verb+" "+strings.TrimSuffix(call, "*")))
	}
	return fault.New(errcode.FlagValue, flag+" shortens a list, and this call prints none").With("flag", flag).WithFix("lists are printed by "+strings.Join(calls, ", "), calls[0])
}

// errCommandString ends the flags at the string of -c.
var errCommandString = errors.New("a command string ends the flags")

// parse hands args to pflag. With errCommandString it returns what was read so far.
func parse(spec Spec, args []string) (*Values, error) {
	v := &Values{set: map[string][]string{}}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SetInterspersed(!spec.Stops)
	set.SortFlags = false
	for i := range spec.Flags {
		f := &spec.Flags[i]
		p := &pflag.Flag{Name: f.Name, Value: (*pflagValue)(f)}
		if f.Short != 0 {
			p.Shorthand = string(f.Short)
		}
		if !f.takesValue() {
			p.NoOptDefVal = "true"
		}
		set.AddFlag(p)
	}
	err := set.ParseAll(args, func(p *pflag.Flag, value string) error {
		f := (*Flag)(p.Value.(*pflagValue))
		if err := f.check("--"+f.Name, value); err != nil {
			return err
		}
		v.set[f.Name] = append(v.set[f.Name], value)
		if f.Name == "command" && spec.Stops {
			return errCommandString
		}
		return nil
	})
	if errors.Is(err, errCommandString) {
		return v, errCommandString
	}
	if err != nil {
		return nil, err
	}
	v.Rest, v.Dash = set.Args(), set.ArgsLenAtDash() >= 0
	return v, nil
}

// pflagValue is a flag of ours as pflag takes it. Parse reads the values itself, so
// that the last word about what a value may be is check's.
type pflagValue Flag

func (*pflagValue) String() string   { return "" }
func (*pflagValue) Set(string) error { return nil }
func (*pflagValue) Type() string     { return "" }

// usageError says in our terms what pflag refused.
func usageError(spec Spec, err error) error {
	var invalid *fault.Fault
	if errors.As(err, &invalid) {
		return invalid
	}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		shown := "--" + missing.GetSpecifiedName()
		if missing.GetSpecifiedShortnames() != "" {
			shown = "-" + missing.GetSpecifiedName()
		}
		return fault.New(errcode.FlagValue, shown+" needs a value").With("flag", shown).WithFix("write "+shown+" "+missing.GetFlag().Value.(*pflagValue).Value, "")
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		shown := "--" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			shown = "-" + unknown.GetSpecifiedName()
		}
		return unknownFlag(spec, shown)
	}
	var syntax *pflag.InvalidSyntaxError
	if errors.As(err, &syntax) {
		return unknownFlag(spec, syntax.GetSpecifiedFlag())
	}
	return fault.New(errcode.Arguments, err.Error())
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
		return fault.New(errcode.FlagValue, fmt.Sprintf("%s: %q %s", shown, value, what)).With("flag", shown).WithFix(fix, example)
	}
	switch f.Kind {
	case Bool, Count:
		if value != "true" {
			return fault.New(errcode.FlagValue, shown+" takes no value").With("flag", shown)
		}
	case Enum:
		if slices.Contains(f.Enum, value) {
			return nil
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

func unknownFlag(spec Spec, shown string) error {
	f := fault.New(errcode.UnknownFlag, "unknown flag "+shown).With("flag", shown)
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
