package atip

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

func TestBind(t *testing.T) {
	pattern := func(variables string, steps ...string) Pattern {
		for i, s := range steps {
			steps[i] = fmt.Sprintf(`{"command":%q}`, s)
		}
		list, err := ParsePatterns([]byte(`{"patterns":[{"name":"p","executable":true,"variables":{` + variables + `},"steps":[` + strings.Join(steps, ",") + `]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return list[0]
	}
	for _, c := range []struct {
		name, variables, step string
		values                map[string]string
		want                  string // words, or the code of the error
	}{
		{"a word", "", "git checkout {branch}", map[string]string{"branch": "x"}, `["git" "checkout" "x"]`},
		{"an option", "", "git checkout {branch}", map[string]string{"branch": "--orphan"}, "E1002"},
		{"an option in two parts", "", "git checkout {a}{b}", map[string]string{"a": "", "b": "-f"}, "E1002"},
		{"a dash of the template", "", "git checkout {a}-x", map[string]string{"a": ""}, "E1002"},
		{"an option's value", "", "git commit --message={m}", map[string]string{"m": "-x --y"}, `["git" "commit" "--message=-x --y"]`},
		{"a template's option", "", "ls -{flag}", map[string]string{"flag": "l"}, `["ls" "-l"]`},
		{"substitution", "", "echo {x}", map[string]string{"x": "$(id)"}, `["echo" "$(id)"]`},
		{"quotes and operators", "", "echo {x}", map[string]string{"x": `a' "b ; rm -rf / | c`}, `["echo" "a' \"b ; rm -rf / | c"]`},
		{"quoted template", "", `gh pr create --title "{t} now" --body '{t}'`, map[string]string{"t": "a b"}, `["gh" "pr" "create" "--title" "a b now" "--body" "a b"]`},
		{"empty", "", "echo {x} '' y", map[string]string{"x": ""}, `["echo" "" "" "y"]`},
		{"braces in a value", "", "echo {x} {y}", map[string]string{"x": "{y}", "y": "1"}, `["echo" "{y}" "1"]`},
		{"other braces", "", "find . {} {a,b} {", nil, `["find" "." "{}" "{a,b}" "{"]`},
		{"NUL", "", "echo {x}", map[string]string{"x": "a\x00b"}, "E1002"},
		{"newline", "", "echo {x}", map[string]string{"x": "a\nb"}, "E1002"},
		{"missing", "", "echo {x}", nil, "E1004"},
		{"too many", "", "echo {x}", map[string]string{"x": "1", "y": "2"}, "E1004"},
		{"default", `"x":{"type":"string","default":"d"}`, "echo {x}", nil, `["echo" "d"]`},
		{"bad default", `"x":{"default":"-d"}`, "echo {x}", nil, "E1002"},
		{"integer", `"n":{"type":"integer"}`, "gh pr view {n}", map[string]string{"n": "4x"}, "E1002"},
		{"negative integer", `"n":{"type":"integer"}`, "gh pr view {n}", map[string]string{"n": "-4"}, "E1002"},
		{"enum", `"n":{"enum":["a","b"]}`, "x {n}", map[string]string{"n": "c"}, "E1002"},
		{"number", `"n":{"type":"number"}`, "x {n}", map[string]string{"n": "1.5"}, `["x" "1.5"]`},
		{"boolean", `"n":{"type":"boolean"}`, "x {n}", map[string]string{"n": "yes"}, "E1002"},
		{"variable program", "", "{cmd} x", map[string]string{"cmd": "rm"}, "E1103"},
		{"shell", "", "a | b", nil, "E1103"},
		{"list", "", "a && b", nil, "E1103"},
		{"redirection", "", "a >b", nil, "E1103"},
		{"open quote", "", "a 'b", nil, "E1103"},
		{"quoted operators", "", `a "x|y" '&' \;`, nil, `["a" "x|y" "&" ";"]`},
		{"no words", "", "  ", nil, "E1103"},
	} {
		steps, err := pattern(c.variables, c.step).Bind(c.values)
		got := ""
		var bad *errcode.Error
		switch {
		case errors.As(err, &bad):
			got = bad.Code
		case err != nil:
			got = err.Error()
		default:
			got = fmt.Sprintf("%q", steps[0])
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s (%v)", c.name, got, c.want, err)
		}
	}
	// Nothing is bound if one step is wrong: no pattern stops half way for that.
	if steps, err := pattern("", "echo 1", "git checkout {b}").Bind(map[string]string{"b": "-x"}); err == nil || steps != nil {
		t.Errorf("%q %v", steps, err)
	}
}

func TestParsePatterns(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":"a","steps":[{"command":"x {v}"}]}`:                                    "a x {v} [v]",
		`// c` + "\n" + `{"patterns":[{"name":"a","steps":[{"command":"x"}]}]}`:         "a x []",
		`{"atip":"0.4","name":"t","patterns":[{"name":"a","steps":[{"command":"x"}]}]}`: "a x []",
		`{"atip":"9.4","patterns":[]}`:                                                  "E1104",
		`{"patterns":[{"name":"a"}]}`:                                                   "E1103",
		`{"patterns":[{"name":"a","name":"b"}]}`:                                        "E1101",
		`{}`:                                                                            "E1103",
		`[]`:                                                                            "E1103",
		``:                                                                              "E1101",
	} {
		list, err := ParsePatterns([]byte(text))
		got := ""
		var bad *DocError
		if errors.As(err, &bad) {
			got = bad.Code
		} else if len(list) == 1 {
			var names []string
			for _, v := range list[0].Variables {
				names = append(names, v.Name)
			}
			got = fmt.Sprint(list[0].Name, " ", list[0].Steps[0].Command, " ", names)
		}
		if got != want {
			t.Errorf("%s: %q, want %q (%v)", text, got, want, err)
		}
	}
}

// FuzzBind: a value never adds a word, and never becomes an option.
func FuzzBind(f *testing.F) {
	f.Add("git checkout {x} --a={x} '{x} y'", "--orphan")
	f.Add(`a "{x}" \{x} {x}{x}`, "$(id) ; '")
	f.Fuzz(func(t *testing.T, step, value string) {
		p := Pattern{Name: "p", Steps: []Step{{Command: step}}, Variables: []Variable{{Name: "x"}}}
		with, err := p.Bind(map[string]string{"x": value})
		if err != nil {
			return
		}
		without, err := p.Bind(map[string]string{"x": "v"})
		if err != nil || len(with[0]) != len(without[0]) {
			t.Fatalf("%q: %d words, want %d", step, len(with[0]), len(without[0]))
		}
		for i, w := range with[0] {
			if strings.HasPrefix(w, "-") && !strings.HasPrefix(without[0][i], "-") {
				t.Errorf("%q becomes an option", w)
			}
		}
	})
}
