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
		{[]string{"git", "blame", "-L", "1,5", "--", "a.go"}, " ", true}, {[]string{"git", "blame", "-p", "a.go"}, " ", false}, {[]string{"git", "blame", "--line-porcelain", "a.go"}, " ", false},
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

func TestDigits(t *testing.T) {
	for _, row := range []struct {
		argv   []string
		shape  bool
		passes bool
	}{
		{[]string{"tr", "-dc", "0-9"}, true, false},
		{[]string{"tr", "-cd", "[:digit:]"}, true, false},
		{[]string{"tr", "-dc", "0-9a"}, false, false},
		{[]string{"tr", "-d", "0-9"}, false, false},
		{[]string{"tr", "-d", " "}, false, true},
		{[]string{"tr", "-d", `\n`}, false, true},
		{[]string{"tr", `\n`, " "}, false, true},
		{[]string{"tr", `\n`, "-"}, false, false},
		{[]string{"tr", "a", " "}, false, false},
		{[]string{"tr", "-d", "n"}, false, false},
		{[]string{"tr", "a-z", "n-za-m"}, false, false},
		{[]string{"grep", "-oE", "[0-9]{4,5}", "/tmp/srv.log"}, true, false},
		{[]string{"grep", "-oP", `v\d+\.\d+`}, true, false},
		{[]string{"grep", "-o", "[0-9a-f]*", "x", "y"}, false, false},
		{[]string{"grep", "-ro", "[0-9]+", "src"}, false, false},
		{[]string{"grep", "-oE", "-[0-9]+"}, false, false},
		{[]string{"grep", "-oE", "[^0-9]+"}, false, false},
		{[]string{"grep", "-oE", ".[0-9]+"}, false, false},
		{[]string{"grep", "-oE", "[0-9]+ [a-z]"}, false, false},
		{[]string{"grep", "-oE", "x", "f"}, false, false},
		{[]string{"docker", "ps", "-q"}, true, false},
		{[]string{"docker", "ps", "-aq"}, true, false},
		{[]string{"docker", "ps", "-a"}, false, false},
		{[]string{"docker", "rm", "-q"}, false, false},
		{[]string{"docker", "ps", "-qf", "name=worker"}, true, false},
		{[]string{"docker", "ps", "--filter", "status=exited", "-q", "--no-trunc"}, true, false},
		{[]string{"docker", "ps", "-q", "--format", "{{.Names}}"}, false, false},
		{[]string{"docker", "ps", "-fq", "name=worker"}, false, false},
		{[]string{"docker", "ps", "-f", "-q"}, false, false},
		{[]string{"docker", "network", "ls", "-q"}, true, false},
		{[]string{"docker", "volume", "ls", "-q"}, false, false},
		{[]string{"docker", "container", "rm", "-q"}, false, false},
		{[]string{"docker", "ps", "-q", "web"}, false, false},
	} {
		if shape, passes := Numbers(row.argv), Passes(row.argv); shape != row.shape || passes != row.passes {
			t.Errorf("%q: numbers %v, passes %v", row.argv, shape, passes)
		}
	}
}
