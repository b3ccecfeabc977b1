package runfile

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// parse reads a single Runfile; what it sources is not looked at.
func parse(path, text string) (*File, error) {
	f := &File{Path: path}
	return f, f.parse(path, text, func(string) error { return nil })
}

func mustParse(t *testing.T, text string) *File {
	t.Helper()
	f, err := parse("/p/Runfile", text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func codeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// TestBodies holds where a body ends, whatever its language quotes.
func TestBodies(t *testing.T) {
	for name, c := range map[string]struct{ text, body string }{
		"line":             {"f() echo hi", "echo hi"},
		"joined":           {"f() echo \\\n  hi\ng() x", "echo \\\n  hi"},
		"heredoc in line":  {"f() cat <<X\nhi\nX\ng() x", "cat <<X\nhi\nX\n"},
		"block":            {"f() {\n echo }\n}\n", ""},
		"nested":           {"f() {\n { echo a; }\n}\ng() x", "\n { echo a; }\n"},
		"comment":          {"f() {\n # don't { stop\n echo\n}\n", "\n # don't { stop\n echo\n"},
		"quotes":           {"f() { echo '}' \"}\" $'\\'}' ; }", " echo '}' \"}\" $'\\'}' ; "},
		"heredoc":          {"f() {\n cat <<X\n}\n don't\nX\n}\n", "\n cat <<X\n}\n don't\nX\n"},
		"heredoc tabs":     {"f() {\n cat <<-'X'\n}\n\tX\n}\n", "\n cat <<-'X'\n}\n\tX\n"},
		"shift":            {"f() {\n echo $((1<<n))\n}\n", "\n echo $((1<<n))\n"},
		"two heredocs":     {"f() {\n cat <<A <<B\n}\nA\n{\nB\n}\n", "\n cat <<A <<B\n}\nA\n{\nB\n"},
		"expansion":        {"f() { echo ${x#y} ${#x} \"${z:-\"}\"}\"; }", " echo ${x#y} ${#x} \"${z:-\"}\"}\"; "},
		"brace below":      {"f()\n{\n echo\n}\n", "\n echo\n"},
		"keyword":          {"function f {\n echo\n}\n", "\n echo\n"},
		"keyword params":   {"function f(a, b) { echo $a; }", " echo $a; "},
		"crlf":             {"f() {\r\n echo\r\n}\r\n", "\n echo\n"},
		"python":           {"# @shell python3\nf() {\n    d = {'a': \"}\"}\n    # don't }\n    '''\n    }'''\n}\n", "d = {'a': \"}\"}\n# don't }\n'''\n}'''\n"},
		"node":             {"# @shell node\nf() {\n  // don't }\n  const o = {a: `}`};\n  /* } */\n}\n", "// don't }\nconst o = {a: `}`};\n/* } */\n"},
		"node regexp":      {"# @shell node\nf() {\n  x.replace(/'/g, '{');\n}\ng() x", "x.replace(/'/g, '{');\n"},
		"shebang":          {"f() {\n    #!/usr/bin/env python3\n    print('it')\n}", "#!/usr/bin/env python3\nprint('it')\n"},
		"one line python":  {"# @shell python3\nf() { print('}') }", "print('}')\n"},
		"trailing comment": {"f() { echo; } # done\n", " echo; "},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := parse("/p/Runfile", c.text)
			if c.body == "" {
				if codeOf(err) != "E1205" {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil || len(f.Functions) == 0 || f.Functions[0].Body != c.body {
				t.Fatalf("%v %+v", err, f.Functions)
			}
		})
	}
}

func TestSignatures(t *testing.T) {
	f := mustParse(t, `# @desc "Scale a service"
# @arg 1:service string The name
#@arg replicas How many
# a plain comment between
# @effects network, write:dist
# @timeout 90
scale(service, replicas: int = 3, ratio: float = 0.5, on: bool = true, o: object = {"a": 1}, ...rest) {
	echo
}
`)
	fn := f.Functions[0]
	want := []Param{{Name: "service", Desc: "The name", Signature: true}, {Name: "replicas", Type: Integer, Default: "3", HasDefault: true, Desc: "How many", Signature: true},
		{Name: "ratio", Type: Number, Default: "0.5", HasDefault: true, Signature: true}, {Name: "on", Type: Boolean, Default: "true", HasDefault: true, Signature: true},
		{Name: "o", Type: JSONObject, Default: `{"a": 1}`, HasDefault: true, Signature: true}, {Name: "rest", Rest: true, Signature: true}}
	if !reflect.DeepEqual(fn.Params, want) {
		t.Errorf("%+v", fn.Params)
	}
	if fn.Desc != "Scale a service" || fn.Timeout != 90*time.Second || !reflect.DeepEqual(fn.ceiling(), []string{"network", "write:/p/dist"}) {
		t.Errorf("%+v", fn)
	}
}

func TestSyntaxErrorsNameTheLine(t *testing.T) {
	for text, line := range map[string]int{
		"\nrm -rf x\n":               2,
		"f() {\n":                    1,
		"f(a\n":                      1,
		"f(a, a) x":                  1,
		"f(a = 1, b) x":              1,
		"f(...a, b) x":               1,
		"f(a: thing) x":              1,
		"f(a: int = x) x":            1,
		"f(a b) x":                   1,
		"f()":                        1,
		"# @effects wrote\nf() x":    1,
		"# ok\n# @shell perl\nf() x": 2,
		"# @timeout soon\nf() x":     1,
		"# @arg 0:x\nf() x":          1,
		"# @os plan9\nf() x":         1,
		"f() { x; } y":               1,
		"export X=1":                 1,
		"f() x\n\x00":                1,
		"f() \xff":                   1,
		"function f x":               1,
		"$(touch /tmp/x)":            1,
		"source":                     1,
		"f() {\n  a\n}\n\n\n# c\nif true; then x; fi": 7,
	} {
		_, err := parse("/p/Runfile", text)
		var e *Error
		if !errors.As(err, &e) || e.Code != "E1205" || e.Line != line {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestBlankLineEndsAttributes(t *testing.T) {
	f := mustParse(t, "# @desc lost\n\nf() x\n# @desc kept\n# text\ng() x\n")
	if f.Functions[0].Desc != "" || f.Functions[1].Desc != "kept" {
		t.Errorf("%+v", f.Functions)
	}
}

func TestBind(t *testing.T) {
	fn := mustParse(t, "f(a, n: int = 2, b: bool = true, ...r) x").Functions[0]
	for _, c := range []struct {
		in   []string
		want []string
		code string
	}{
		{[]string{}, nil, "E1201"},
		{[]string{""}, []string{"", "2", "true"}, ""},
		{[]string{"$(x)"}, []string{"$(x)", "2", "true"}, ""},
		{[]string{"a", "x"}, nil, "E1202"},
		{[]string{"a", "-3", "yes"}, nil, "E1202"},
		{[]string{"a", "1", "false", "--x", "y z"}, []string{"a", "1", "false", "--x", "y z"}, ""},
	} {
		got, err := fn.Bind(c.in)
		if codeOf(err) != c.code || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %q %v", c.in, got, err)
		}
	}
}

func TestBindNamed(t *testing.T) {
	fn := mustParse(t, "f(a, n: int = 2, o: object = {}, ...r) x").Functions[0]
	for in, want := range map[string][]string{
		`{"a":"$(x)\n'\""}`:                 {"$(x)\n'\"", "2", "{}"},
		`{"a":"x","n":3.0}`:                 {"x", "3", "{}"},
		`{"a":"x","o":{"k": [1]}}`:          {"x", "2", `{"k":[1]}`},
		`{"a":"x","r":["p","q r"]}`:         {"x", "2", "{}", "p", "q r"},
		`{"a":"x","n":null}`:                {"x", "2", "{}"},
		`{"a":5}`:                           nil,
		`{"n":5}`:                           nil,
		`{"a":"x","n":"5"}`:                 nil,
		`{"a":"x","n":5.5}`:                 nil,
		`{"a":"x","o":[]}`:                  nil,
		`{"a":"x","r":[1]}`:                 nil,
		`{"a":"x","zz":1}`:                  nil,
		`{"a":"x","n":1e99}`:                nil,
		`{"a":"x","n":9223372036854775808}`: nil,
	} {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(in), &object); err != nil {
			t.Fatal(err)
		}
		got, err := fn.BindNamed(object)
		if (err != nil) != (want == nil) || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q %v", in, got, err)
		}
	}
}

func TestFindWords(t *testing.T) {
	f := mustParse(t, "docker:compose:up() a\ndocker() b\nbuild-all() c\n")
	for words, want := range map[string]string{"docker compose up x": "docker:compose:up x", "docker ps": "docker ps", "build_all": "build-all", "docker:compose:up": "docker:compose:up"} {
		fn, rest, err := f.Find(strings.Fields(words))
		if err != nil || strings.TrimSpace(fn.Name+" "+strings.Join(rest, " ")) != want {
			t.Errorf("%s: %v %v", words, fn, err)
		}
	}
	if _, _, err := f.Find([]string{"nope"}); codeOf(err) != "E1203" {
		t.Error(err)
	}
}

// TestReachableOnly: a broken function harms only those that call it.
func TestReachableOnly(t *testing.T) {
	f := mustParse(t, "good() helper\nhelper() echo\nbroken() { if; }\nbad() broken\n")
	call, err := f.Script(f.function("good"), nil, "bash")
	if err != nil || strings.Contains(call.Code, "broken") || !strings.Contains(call.Code, "helper()") {
		t.Errorf("%v %+v", err, call)
	}
	if _, err := f.Script(f.function("bad"), nil, "bash"); codeOf(err) != "E1205" || !strings.Contains(err.Error(), "/p/Runfile:3") {
		t.Error(err)
	}
}

// TestPosixNames: sh has no a:b, so calls are rewritten where they are calls.
func TestPosixNames(t *testing.T) {
	f := mustParse(t, "# @shell sh\nmain() { a:b 'a:b'; echo a:b; c-d; }\na:b() echo\nc-d() echo\n")
	call, err := f.Script(f.function("main"), nil, "sh")
	if err != nil || !strings.Contains(call.Code, "a_b 'a:b'; echo a:b; c_d;") || !strings.Contains(call.Code, "a_b() {") {
		t.Errorf("%v\n%s", err, call.Code)
	}
}

func TestToolNames(t *testing.T) {
	long := strings.Repeat("x", 70)
	f := mustParse(t, "# @desc d\na:b() x\n# @desc d\n"+long+"() x\n")
	list, err := f.Offered(false, false)
	if err != nil || list[0].ToolName() != "a__b" || len(list[1].ToolName()) != 64 {
		t.Errorf("%v %s", err, list[1].ToolName())
	}
	f = mustParse(t, "# @desc d\na:b() x\n# @desc d\na__b() x\n")
	if _, err := f.Offered(false, false); codeOf(err) != "E1205" {
		t.Error(err)
	}
}

func place(t *testing.T, files map[string]string) Place {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Place{Dir: filepath.Join(dir, "p"), Home: filepath.Join(dir, "home"), Global: true, UID: os.Getuid()}
}

func TestLoad(t *testing.T) {
	at := place(t, map[string]string{"p/Runfile": "source \"lib/a.run\" # tools\nsource gone\nsource ~/h.run\nf() project\n", "p/lib/a.run": "f() lib\ng() lib\nsource ../Runfile\nsource b.run\nX='a b'\n",
		"p/lib/b.run": "h() deep\n", "home/.runfile": "g() global\nonly() global\n", "home/h.run": "home() x\n", "p/sub/x": ""})
	at.Dir += "/sub"
	f, err := Load(at)
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{}
	for _, fn := range f.Functions {
		bodies[fn.Name] = fn.Body
	}
	if want := map[string]string{"f": "project", "g": "lib", "h": "deep", "only": "global", "home": "x"}; !reflect.DeepEqual(bodies, want) {
		t.Errorf("%v", bodies)
	}
	if len(f.Warnings) != 1 || f.vars[0].value != "a b" {
		t.Errorf("%v %v", f.Warnings, f.vars)
	}
	at.Global = false
	if f, _ = Load(at); f.function("only") != nil {
		t.Error("the global file counted")
	}
}

func TestLoadRefuses(t *testing.T) {
	deep := map[string]string{}
	for i := range 20 {
		deep["p/"+string(rune('a'+i))] = "source " + string(rune('a'+i+1)) + "\n"
	}
	deep["p/Runfile"] = "source a\n"
	if _, err := Load(place(t, deep)); codeOf(err) != "E1205" {
		t.Errorf("deep: %v", err)
	}
	if _, err := Load(place(t, map[string]string{"p/Runfile": strings.Repeat("# x\n", MaxFile/4+1)})); codeOf(err) != "E1205" {
		t.Errorf("long: %v", err)
	}
	at := place(t, map[string]string{"p/x": ""})
	if _, err := Load(at); codeOf(err) != "E1204" {
		t.Errorf("none: %v", err)
	}
	at.File = "/dev/zero"
	if _, err := Load(at); codeOf(err) != "E1206" {
		t.Errorf("device: %v", err)
	}
	if _, err := parse("/p/Runfile", strings.Repeat("f", 3)+"() x\n"); err != nil {
		t.Error(err)
	}
	var many strings.Builder
	for i := range MaxFunctions + 1 {
		many.WriteString("f" + strings.Repeat("a", i%26+1) + strings.Repeat("b", i/26) + "() x\n")
	}
	if _, err := parse("/p/Runfile", many.String()); codeOf(err) != "E1205" {
		t.Errorf("many: %v", err)
	}
}

// FuzzParse: reading never panics or hangs, each error has a code and a line, and what was
// read can be made ready to run.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"f() echo hi\n", "# @desc d\n# @arg 1:x int t\n# @shell python\nf() {\n print('x')\n}\n", "f(a, b: int = 3, ...r) {\n cat <<X\n}\nX\n}\n", "source a\nX=1\nfunction g {\n # don't\n}\n", "f()\n{\n", "# @effects write:a\nf() { g; }\ng() f\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := parse("/p/Runfile", text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Code == "" || e.Line < 1 {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, fn := range file.Functions {
			args := make([]string, 0, len(fn.Params))
			for range fn.Params {
				args = append(args, "1")
			}
			if bound, err := fn.Bind(args); err == nil {
				if _, err := file.Script(fn, bound, "bash"); err != nil && codeOf(err) != "E1205" {
					t.Fatalf("%v", err)
				}
			}
			if _, err := json.Marshal(fn.Schema()); err != nil {
				t.Fatal(err)
			}
			_ = fn.ToolName()
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	var text strings.Builder
	for i := range 200 {
		text.WriteString("# @desc Function\n# @arg 1:service string The service\n# @effects network write:dist\nfunction-" + strconv.Itoa(i) + "(service, replicas: int = 3) {\n  docker compose scale \"$service=$replicas\"\n  cat <<X\ntext }\nX\n}\n\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "Runfile"), []byte(text.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f, err := Load(Place{Dir: dir, UID: os.Getuid()})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.Script(f.Functions[0], []string{"a", "3"}, "bash"); err != nil {
			b.Fatal(err)
		}
	}
}
