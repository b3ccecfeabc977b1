package prints

import "testing"

func TestFirst(t *testing.T) {
	for _, row := range []struct {
		argv []string
		end  string
		want bool
	}{
		{[]string{"git", "log", "--oneline"}, " ", true},
		{[]string{"git", "log", "--oneline", "-Sx", "--", "src"}, " ", true},
		{[]string{"git", "log", "--format=%h %s"}, " ", true},
		{[]string{"git", "log", "--format=%h %an %ar"}, " ", true},
		{[]string{"git", "log", "--oneline"}, ":", false},
		{[]string{"git", "log", "--format=%s %h"}, " ", false},
		{[]string{"git", "log", "--format=%h:%s"}, " ", false},
		{[]string{"git", "log", "--format=%h %s%n%h"}, " ", false},
		{[]string{"git", "log", "--format=%h %B"}, " ", false},
		{[]string{"git", "log", "--format=%h %b"}, " ", false},
		{[]string{"git", "log", "--format=%h %x0a%s"}, " ", false},
		{[]string{"git", "log", "--format=%h\n%s x"}, " ", false},
		{[]string{"git", "log", "--oneline", "--graph"}, " ", false},
		{[]string{"git", "log", "--oneline", "-p"}, " ", false},
		{[]string{"git", "log", "--oneline", "--format=%s"}, " ", false},
		{[]string{"grep", "-n", "x", "src/a.ts"}, ":", true},
		{[]string{"grep", "-nE", "x|y", "src/a.ts"}, ":", true},
		{[]string{"grep", "x", "src/a.ts"}, ":", false},
		{[]string{"grep", "-rn", "x", "src"}, ":", false},
		{[]string{"grep", "-nH", "x", "a"}, ":", false},
		{[]string{"grep", "-n", "x", "a", "b"}, ":", false},
		{[]string{"grep", "-n", "x", "a;w b"}, ":", false},
		{[]string{"grep", "-n", "x", ""}, ":", false},
	} {
		if got := First(row.argv, row.end); got != row.want {
			t.Errorf("%q up to %q: %v", row.argv, row.end, got)
		}
	}
	for _, row := range []struct {
		argv []string
		want string
	}{
		{[]string{"cut", "-d", " ", "-f1"}, " "}, {[]string{"cut", "-d ", "-f1"}, " "}, {[]string{"cut", "-d:", "-f1"}, ":"}, {[]string{"awk", "{print $1}"}, " "},
		{[]string{"cut", "-d ", "-f2"}, ""}, {[]string{"awk", "{print $2}"}, ""}, {[]string{"awk", "{print $1}", "file"}, ""}, {[]string{"cut", "-f1"}, ""},
	} {
		if got := OnlyFirst(row.argv); got != row.want {
			t.Errorf("%q: %q", row.argv, got)
		}
	}
}
