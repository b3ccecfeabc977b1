package shell

import (
	"encoding/base64"
	"strings"
	"testing"
)

// TestSnapshot: what the file of a host defines counts in the text behind it.
func TestSnapshot(t *testing.T) {
	encoded := func(text string) string {
		code := base64.StdEncoding.EncodeToString([]byte(text))
		for i := 20; i < len(code); i += 21 {
			code = code[:i] + "\n" + code[i:]
		}
		return `eval "$(echo '` + code + `' | base64 -d)" > /dev/null 2>&1` + "\n"
	}
	quoted := "eval $'bye () \\n{ \\n    echo \\'a\\tb\\'; push -n\\n}' > /dev/null 2>&1\neval -- $'-x () \\n{ \\n    git push -x\\n}' > /dev/null 2>&1\n" +
		"eval \"$(unread)\" > /dev/null 2>&1\neval two words > /dev/null 2>&1\n"
	file := encoded("say () \n{ \n    echo \"said $1\"; push\n}") + encoded("push () \n{ \n    git push \"$@\"\n}") +
		encoded("command_not_found_handle () \n{ \n    /usr/lib/command-not-found -- \"$1\"\n}") +
		quoted + "function find {\n  unread $1\n}\nshopt -s expand_aliases\n" +
		"alias -- ll='ls -l'\nalias -- ls='ls --color=auto'\nalias -- gone='rm -rf ~'\nalias -- say2='echo '\\''two words'\\'' | tr a b'\nalias -- odd='a\nb'\n"
	o := Options{Cwd: "/w", Home: "/h", Trusted: func(p string) bool { return p == "/h/snap.sh" },
		ReadFile: func(p string) ([]byte, error) { return []byte(file), nil }}
	for _, row := range []struct{ text, want string }{
		{"eval 'say x'", "echo said x;git push"},
		{"eval 'push -f'", "git push -f"},
		{"eval 'bye'", "echo a\tb;git push -n"},
		{"eval '\\-x'", "git push -x"},
		{"eval 'find .'", "find ."},
		{"eval 'll sub'", "ls --color=auto -l sub;ls -l sub;ll sub"},
		{"eval 'gone'", "rm -rf /h;gone"},
		{"eval 'say2'", "echo two words;tr a b;say2"},
		{"eval 'odd'", "?odd;odd"},
		{"eval 'alias x=y; x'", "alias x=y;?;x"},
		{"eval 'echo hi'", "echo hi"},
	} {
		script, err := Read("source /h/snap.sh 2>/dev/null || true && "+row.text, o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range script.Commands {
			line := strings.Join(c.Argv, " ")
			if c.Kind == Opaque {
				line = "?" + line
			}
			if line != "true" && !strings.HasPrefix(line, "source ") {
				got = append(got, line)
			}
		}
		if s := strings.Join(got, ";"); s != row.want {
			t.Errorf("%s: %q, want %q", row.text, s, row.want)
		}
	}
}
