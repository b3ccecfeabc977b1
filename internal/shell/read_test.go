package shell

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
)

// world is a directory /ws with a sub-directory, and a home.
func world() Options {
	return Options{
		Cwd: "/ws", Home: "/home/u",
		Getenv: func(n string) (string, bool, bool) {
			switch n {
			case "HOME":
				return "/home/u", true, true
			case "LANG":
				return "C", true, true
			case "SECRET":
				return "", false, false
			}
			return "", false, true
		},
		IsDir: func(p string) bool { return p == "/ws/sub" || p == "/" || p == "/home/u" },
		ReadFile: func(p string) ([]byte, error) {
			switch p {
			case "/ws/lib.sh":
				return []byte("victim() { rm -rf \"$1\"; }\nX=fromlib\n"), nil
			case "/ws/env/bin/activate":
				return []byte(activate), nil
			case "/ws/again.sh":
				return []byte(". ./again.sh\n"), nil
			}
			return nil, errors.New("no such file")
		},
	}
}

// activate asks what files ask that several shells on several systems read.
const activate = `if [ -n "${ZSH_VERSION:+x}" ]; then
	HERE="${(%):-%x}"
elif [ -n "${KSH_VERSION:+x}" ]; then
	HERE="${.sh.file}"
fi
if [ ! -d /ws/env ]; then
	ENV_DIR=$(realpath "$HERE/..")
else
	ENV_DIR=/ws/env
fi
if ([ "$OSTYPE" = "cygwin" ] || [ "$OSTYPE" = "msys" ]) && $(command -v cygpath &>/dev/null); then
	ENV_DIR=$(cygpath -u "$ENV_DIR")
fi
case "$(uname)" in
	CYGWIN*|MSYS*) ENV_DIR=$(cygpath "$ENV_DIR") ;;
esac
if ! [ -z "${ENV_HOME+_}" ]; then
	unset ENV_HOME
fi
`

// brief is one command in short: "rm -rf /x", "?" for an opaque one, with the
// directories if they are not /ws.
func brief(c *Command) string {
	words := strings.ReplaceAll(strings.ReplaceAll(strings.Join(c.Argv, " "), HoleSplit, "…"), Hole, "…")
	switch c.Kind {
	case Opaque:
		words = strings.TrimSpace("? " + words)
	case Builtin:
		words = "(" + words + ")"
	}
	for _, r := range c.Redirects {
		mode := ""
		if r.Read {
			mode += "<"
		}
		if r.Write {
			mode += ">"
		}
		words += " " + mode + strings.ReplaceAll(strings.ReplaceAll(r.Path, HoleSplit, "…"), Hole, "…")
	}
	if c.CwdUnknown || len(c.Cwds) != 1 || c.Cwds[0] != "/ws" {
		words += " @" + strings.Join(c.Cwds, ",")
		if c.CwdUnknown {
			words += "?"
		}
	}
	return words
}

func briefs(s *Script) string {
	var out []string
	for i := range s.Commands {
		out = append(out, brief(&s.Commands[i]))
	}
	return strings.Join(out, "; ")
}

// TestConstructs has a row for every construct of the language that can hold a
// command or a word.
func TestConstructs(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		// Lists, groups, conditions, loops: every branch.
		{"a; b", "a; b"},
		{"a && b || c", "a; b; c"},
		{"a &", "a"},
		{"! a", "a"},
		{"time a", "a"},
		{"time -p -- a", "a"},
		{"time -- -- a", "-- a"},

		// What a variable is decides what is made of its value.
		{"declare -a x='($(a))'", "a; (declare)"},
		{"x=(); declare x='($(a))'", "a; (declare)"},
		{"declare -ia x=('v[$(a)]')", "a; ?; a; ?; (declare)"},
		{"RANDOM='v[$(a)]'", "a; ?; a; ?"},
		{"declare -l c=LS; $c", "(declare); ? …"},
		{"if a; then declare -n r=c; fi", "a; (declare); ?"},

		// What a prefix assigns may stay.
		{"c=a; c=b export c; $c", "(export c); a; b"},
		{"c=a; c=b :; $c", "(:); a"},
		{"c=a; f() { c=$c; }; c=b f; $c", "a; b"},
		{"c=a; f() { declare -g c=b; }; f; $c", "(declare); b"},
		{"c=a; f() { local c=x; declare -g c=b; }; f; $c", "(local); ?; (declare); a"},

		// A trap that may run at any time.
		{"trap 'c=b' ERR; c=a; $c", "(trap c=b ERR); ? …"},
		{"trap 'c=b' EXIT; c=a; $c", "(trap c=b EXIT); a"},
		{"trap 'cd /' ERR", "(trap cd / ERR); (cd /); ?; (cd /)"},
		{"wait -p c; ${c:-a}", "(wait -p c); ? 0; a"},

		{"eval -- 'a b'", "a b"},
		{"a ~+/x", "a /ws/x"},
		{"history -w f; history -r g", "(history -w f) >f; (history -r g) <g"},
		{"a ${FUNCNAME[0]} $BASH_EXECUTION_STRING", "a … …"},
		{"{ a; b; }", "a; b"},
		{"(a; b)", "a; b"},
		{"if a; then b; elif c; then d; else e; fi", "a; b; c; d; e"},
		{"while a; do b; done", "a; b"},
		{"until a; do b; done", "a; b"},
		{"for i in x y; do a $i; done", "a x; a y"},
		{"for i; do a $i; done", ""},
		{"for ((i=$(a); i<$(b); i++)); do c; done", "a; ?; b; ?; c"},
		{"case $(a) in $(b)) c;; x) d;& *) e;; esac", "a; b; c; d; e"},
		{"select x in $(a); do b; done", "a; b"},
		{"[[ $(a) == $(b) && -f $(c) ]]", "a; b; c"},
		{"(( x = $(a) ))", "a; ?"},
		{"a | b |& c", "a; b; c"},
		{"coproc a", "a"},

		// Conditions that only compare what is known.
		{"[ a = b ] && x; [ a = a ] && y; [ a = a ] || z", "([ a = b ]); ([ a = a ]); y; ([ a = a ])"},
		{"c=a; if [ \"$c\" = b ]; then x; elif [ $c != b ]; then y; else z; fi", "([ a = b ]); ([ a != b ]); y"},
		{"if test -z \"$c\"; then x; else y; fi; test ! -n \"$c\" || z", "(test -z ); x; (test ! -n )"},
		{"if [[ $LANG == C && ! -n $c ]]; then x; else y; fi", "x"},
		{"if ([ \"$LANG\" = D ] || [ \"$LANG\" = E ]) && x; then y; fi; z", "([ C = D ]); ([ C = E ]); z"},
		{"if { [ \"$LANG\" = C ]; }; then x; else y; fi", "([ C = C ]); x"},
		{"case $LANG in d*|e) x;; C) y;; *) z;; esac", "y; z"},
		{"case $LANG in d) x;& e) y;; esac", ""},
		{"case $LANG in [A-D]) x;; ?) y;; c) z;; esac", "x; y; z"},
		{"for i in 1 2; do if [ -n \"$c\" ]; then x; fi; c=1; done", "([ -n  ]); ([ -n 1 ]); x"},
		{"while a; do [ \"$c\" = b ] && x; c=b; done", "a; ([  = b ]); x; ([ b = b ])"},
		{"f() { [ \"$1\" = b ] && x; }; f a", "([ a = b ]); x"},
		// Not those that compare what the shell finds out itself, or what does not stay as it was set.
		{"[ \"$0\" = b ] && x", "([ bash = b ]); x"},
		{"[ \"$PWD\" = /elsewhere ] && x; c=$PWD; [ \"$c\" = b ] && y; c=a$c; [ \"$c\" = b ] && z", "([ /ws = /elsewhere ]); x; ([ /ws = b ]); y; ([ a/ws = b ]); z"},
		{"c=~+; [ $c = b ] && x; c=~; [ $c = b ] && y; [ $HOME = b ] && z", "([ /ws = b ]); x; ([ /home/u = b ]); y; ([ /home/u = b ]); z"},
		{"c=$(pwd); case $c in b) x;; esac; case $(pwd) in b) y;; esac", "(pwd); x; (pwd); y"},
		{"cd sub; [ \"$OLDPWD\" = b ] && x", "(cd sub); ([ /ws = b ]) @/ws/sub; x @/ws/sub"},
		{"UID=5; [ \"$UID\" = 0 ] && x", "([ 5 = 0 ]); x"},
		{"readonly c=a; c=b; [ $c = a ] && x", "(readonly); ([ b = a ]); x"},
		{"declare -r c=a; c=b; [ $c = a ] && x", "(declare); ([ b = a ]); x"},
		{". ./none.sh; c=a; [ $c = b ] && x", "(. ./none.sh); ? . ./none.sh; ([ a = b ]); x"},
		{"d=readonly; $d c=a; c=b; [ $c = a ] && x", "(readonly c=a); ([ b = a ]); x"},
		{"IFS=x; c=axb; [ $c = a ] && y", "([ … = a ]); y"},
		{"for c in *; do [ \"$c\" = b ] && x; done", "([ * = b ]); x"},
		{"printf -v c a; [ \"$c\" = b ] && x; c=$((1)); [ \"$c\" = 2 ] && y", "(printf -v c a); ([ a = b ]); x; ([ 1 = 2 ]); y"},
		{"c=a; f() { local c=b; g; }; g() { [ $c = b ] && x; }; f", "(local); ([ b = b ]); x"},
		{"uname() { :; }; case $(uname) in Darwin) x;; esac", "(:); x"},
		{"PATH=/x; case $(uname) in Darwin) x;; esac", "?; uname; x"},
		{"trap 'c=b' ERR; c=a; [ \"$c\" = b ] && x", "(trap c=b ERR); ([ … = b ]); x"},
		{"c=a; (c=b && [ \"$c\" = b ]) && x", "([ b = b ]); x"},
		{"c=a; { c=b && [ \"$c\" = b ]; } && x", "([ b = b ]); x"},
		{"c=a; read c; [ \"$c\" = b ] && x", "(read c); ([ … = b ]); x"},
		{"[ \"$SECRET\" = b ] && x", "([ … = b ]); x"},
		{"[ \"$(a)\" = b ] && x", "a; ([ … = b ]); x"},
		{"[() { :; }; [ a = b ] && x", "(:); x"},
		{"[ a = b ] >f && x", "([ a = b ]) >f; x"},
		{"c='a = a -o b'; [ $c = b ] && x", "([ a = a -o b = b ]); x"},
		{"c='*'; [[ a == $c ]] && x; [[ a == \"$c\" ]] && y", "x; y"},
		{"shopt -s nocasematch; case a in A) x;; esac; [[ a == A ]] && y", "(shopt -s nocasematch); x; y"},
		{"[ $RANDOM = 0 ] && x; [ $# = 0 ] && y", "([ 0 = 0 ]); x; ([ 0 = 0 ]); y"},
		{"[ ! -d /ws ] && x; [ -d sub ] || y", "([ ! -d /ws ]); x; ([ -d sub ]); y"},
		{". env/bin/activate; x $ENV_DIR", "(. env/bin/activate); ([ -n  ]); ([ -n  ]); ([ ! -d /ws/env ]); ([ linux… = cygwin ]); ([ linux… = msys ]); uname; ([ -z  ]); x /ws/env"},
		{"eval 'a ${(f)x} \"${=y}\"'", "a … …"},
		{"eval 'a ${(f)\"x\"}'", "?"},

		{"c=$(a); d=${c##*/}; [ -n \"$d\" ] || x; [ -z \"$d.\" ] || y", "a; ([ -n …\x02 ]); x; ([ -z …\x02. ]); y"},

		// The keys of arrays.
		{"v=(a b); for i in \"${!v[@]}\"; do x $i ${v[$i]}; done", "x 0 a; x 0 b; x 1 a; x 1 b"},
		{"mapfile -t v; for i in ${!v[@]}; do x $i \"${v[$i]}\"; done", "(mapfile -t v); x 0 …"},
		{"declare -A v=([k]=a); for i in ${!v[*]}; do x $i ${v[$i]}; done", "(declare); x k a"},
		{"if a; then declare -A v; v[$(b)]=1; else mapfile v; fi; x ${!v[@]}", "a; (declare); b; b; (mapfile v); x …"},

		// Substitutions, wherever they stand.
		{"a $(b) `c`", "b; c; a … …"},
		{"a <(b) >(c)", "b; c; a /dev/fd/63 /dev/fd/63"},
		{"a > $(b)", "b; a >…"},
		{"x=$(a)", "a"},
		{"x[$(a)]=1", "a; ?; a"},
		{"echo ${x[$(a)]}", "a; ?; a; ?; (echo)"},
		{"echo $(($(a)))", "a; ?; (echo 0)"},
		{"echo ${x:-$(a)}", "a; (echo …)"},
		{"echo ${x:+$(a)}", "a; (echo)"},
		{"echo \"${x:=$(a)}\"", "a; (echo …)"},
		{"a <<E\n$(b)\nE", "b; a"},
		{"a <<'E'\n$(b)\nE", "a"},
		{"a <<< $(b)", "b; a"},

		// Words.
		{"r''m \"a b\" c\\ d", "rm a b c d"},
		{"$'\\x72\\155' $'a\\tb'", "rm a\tb"},
		{"ls ~ ~/x a~", "ls /home/u /home/u/x a~"},
		{"BASH_CMDS[ls]=/bin/rm; ls", "?; ls"},
		{"declare -n x=BASH_CMDS; printf -v 'x[ls]' /bin/rm; ls", "(declare); ?; (printf -v x[ls] /bin/rm); ?; ls"},
		{"read 'BASH_CMDS[ls]' <<< /bin/rm; ls", "(read BASH_CMDS[ls]); ?; ls"},
		{"BASH_ALIASES[ls]=x; a", "?; a"},
		{"PATH[0]=/x; a", "?; a"},
		{"a {,} {,x} {'',y}", "a x  y"},
		{"{,a} b", "a b"},
		{"a {~,x}root {,}~ {Z..a}", "a … xroot /home/u /home/u …"},
		{"rm {,}* {[,x}-]*", "rm * * [-]* x-]*"},
		{"ls {a,b}{1,2} {3..1} x{01..03}y", "ls a1 a2 b1 b2 3 2 1 x01y x02y x03y"},
		{"ls $((2+3*4)) $((1<2)) $((7/2))", "ls 14 1 3"},
		{"x=rm; $x -f a", "rm -f a"},
		{"x='a b'; ls $x \"$x\"", "ls a b a b"},
		{"x=foobar; ls ${x#foo} ${x%bar} ${x/o/0} ${x:1:3} ${#x} ${x^} ${x^^}", "ls bar foo f0obar oob 6 Foobar FOOBAR"},
		{"x=/a/b.c.d; ls ${x##*/} ${x%/*} ${x%%.*} ${x#*.}", "ls b.c.d /a /a/b c.d"},
		{"n=x; x=v; ls ${!n}", "ls v"},
		{"a=(p 'q r' s); ls \"${a[@]}\" ${a[0]} ${#a[@]}", "ls p q r s p 0"},
		{"declare -A m; m[k]=v; ls ${m[k]}", "(declare); ls v"},
		{"set -- p q; ls \"$@\" $1 $#; shift; ls $1", "(set -- p q); ls p q p 2; (shift); ls q"},
		{"ls $(pwd)", "(pwd); ls /ws"},
		{"$(echo rm) -f x", "(echo rm); rm -f x"},
		{"ls $UNSET x", "ls x"},
		{"ls \"$UNSET\" x", "ls  x"},
		{"ls $SECRET \"$SECRET\" a$SECRET", "ls … … a…"},
		{"ls $RANDOM $$ $?", "ls 0 0 0"},
		{"x=a; x+=b; ls $x", "ls ab"},
		{"x=~; ls $x", "ls /home/u"},
		{"IFS=:; x=a:b; ls $x", "ls …"},

		// What cannot be known.
		{"$(a) -rf /", "a; ? … -rf /"},
		{"/bin/r? x", "? /bin/r? x"},
		{"\"$UNSET\" y", "?  y"},
		{"eval \"$(a)\"", "a; ? eval …"},
		{". \"$SECRET\"", "(. …); ? . …"},

		// Variables that branches and loops set.
		{"if a; then x=b; else x=c; fi; $x", "a; c; b"},
		{"a && x=b; ls $x", "a; ls; ls b"},
		{"x=b; (x=c); $x", "b"},
		{"x=b; x=c | d; $x", "d; b"},
		{"while a; do $x; x=b; done", "a; b"},

		// Directories.
		{"cd sub; a", "(cd sub); a @/ws/sub"},
		{"cd gone; a", "(cd gone); a @/ws/gone,/ws"},
		{"cd gone && a; b", "(cd gone); a @/ws/gone; b @/ws/gone,/ws"},
		{"cd gone || exit; a", "(cd gone); (exit) @/ws/gone,/ws; a @/ws/gone"},
		{"set -e; cd gone; a", "(set -e); (cd gone); a @/ws/gone"},
		{"cd; a", "(cd); a @/home/u"},
		{"cd sub; cd -; a", "(cd sub); (cd -) @/ws/sub; a @/ws,/ws/sub"},
		{"cd /; cd tmp && a", "(cd /); (cd tmp) @/; a @/tmp"},
		{"cd $SECRET; a", "(cd …); a @/ws?"},
		{"(cd sub; a); b", "(cd sub); a @/ws/sub; b"},
		{"pushd sub; a; popd; b", "(pushd sub); a @/ws/sub; (popd) @/ws/sub; b @/ws,/ws/sub"},

		// Redirections.
		{"a > f 2> g < h", "a >f >g <h"},
		{"a >> f; b >| g; c &> h; d <> i", "a >f; b >g; c >h; d <>i"},
		{"> f", "() >f"},
		{"a 2>&1", "a"},
		{"{ a; } > f", "() >f; a"},
		{"exec 3> f", "(exec) >f"},
		{"a {v}> f", "a >f"},

		// Functions.
		{"f() { a $1; }; f x; f y", "a x; a y"},
		{"f() { a; }", ""},
		{"ls() { a; }; ls; command ls", "a; ls"},
		{"f() { local x=a; }; x=b; f; $x", "(local); b"},
		{"f() { x=a; }; x=b; f; $x", "a"},
		{"f() { f; }; f", "? f"},
		{"unset -f f; f() { a; }; unset -f f; f", "(unset -f f); (unset -f f); f"},
		{"if a; then f() { b; }; fi; f", "a; b; f"},

		// Builtins that run their words or a text.
		{"eval 'a; b'", "a; b"},
		{"command a; exec b", "a; b"},
		{"builtin eval a", "a"},
		{"trap 'a $x' EXIT; x=1; x=2", "(trap a $x EXIT); a; a 1; a 2"},
		{". ./lib.sh; victim $X", "(. ./lib.sh); rm -rf fromlib"},
		{"echo 'a' > s; . ./s", "(echo a) >s; (. ./s); a"},
		{". ./gone.sh", "(. ./gone.sh); ? . ./gone.sh"},
		{"printf -v x %s a; $x", "(printf -v x %s a); a"},
		{"read x <<< a; $x", "(read x); a"},
		{"a | read x; $x", "a; (read x)"},
		{"read x; $x", "(read x); ? …"},
		{"mapfile -t x <<< $'a\nb'; ${x[0]} ${x[1]}", "(mapfile -t x); a b"},
		{"a < <(echo b)", "(echo b); a </dev/fd/63"},
		{"declare -A m=([$(a)]=1); echo ${m[x]}", "a; a; (declare); (echo …)"},
		{"mapfile -C a x", "(mapfile -C a x); ?"},
		{"declare x=a; $x; export y=b; $y; readonly z=c; $z", "(declare); a; (export); b; (readonly); c"},
		{"declare -n r=x; x=a; $r", "(declare); a"},
		{"let x=1+1; ls $x", "ls 2"},

		// What changes the meaning of words.
		{"PATH=x a", "?; a"},
		{"export LD_PRELOAD=x", "?; (export)"},
		{"hash -p x a", "(hash -p x a); ?"},
		{"enable -n test", "(enable -n test); ?"},
		{"shopt -s expand_aliases", "(shopt -s expand_aliases); ?"},
		{"shopt -s nullglob", "(shopt -s nullglob)"},
		{"set -k", "(set -k); ?"},
		{"trap a DEBUG", "(trap a DEBUG); ?"},
		{"export -f f", "?; (export)"},
		{"command -p a", "?; a"},
		{"declare -i x; x='a[$(b)]'", "(declare); b; ?; b; ?"},
		{"x='a[$(b)]'; echo $((x))", "b; ?; b; ?; (echo 0)"},
		{"x='a[$(b)]'; [[ $x -gt 1 ]]", "b; ?; b; ?"},
		{"unset 'a[$(b)]'", "?; (unset a[$(b)])"},
		{"x='$(b)'; echo ${x@P}", "?; (echo …)"},
		{"a\r", "?; a"},
		{"a\u200b b", "?; a\u200b b"},
		{"a '\u200b'", "a \u200b"},
	} {
		s, err := Read(row.text, world())
		if err != nil {
			t.Errorf("%q: %v", row.text, err)
			continue
		}
		if got := briefs(s); got != row.want {
			t.Errorf("%q\n got %s\nwant %s", row.text, got, row.want)
		}
	}
}

func TestFlows(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"a | b", "[{0 1 0}]"},
		{"a | b | c", "[{0 1 0} {1 2 0}]"},
		{"b $(a)", "[{0 1 1}]"},
		{"x=$(a); b \"$x\"", "[{0 1 1}]"},
		{"eval \"$(a)\"", "[{0 1 1} {0 1 2}]"},
		{"$(a) b", "[{0 1 2}]"},
		{"b <(a)", "[{0 1 1}]"},
		{"a | while read l; do b $l; done", "[{0 1 0} {0 2 1} {0 2 0}]"},
		{"f() { f | f & }; f", "[{0 0 4} {0 1 0} {1 1 4}]"},
		{"exec 5<>/dev/tcp/h/1", "[{0 0 3}]"},
		{"a; b", "[]"},
	} {
		s, err := Read(row.text, world())
		if err != nil {
			t.Errorf("%q: %v", row.text, err)
			continue
		}
		if got := fmt.Sprint(s.Flows); got != row.want {
			t.Errorf("%q: %s, want %s", row.text, got, row.want)
		}
	}
}

// What a constant producer writes is what its reader gets.
func TestConstantInput(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"echo a b | x", "a b\n"},
		{"echo -n a | x", "a"},
		{"echo -e 'a\\tb' | x", "a\tb\n"},
		{"printf '%s-%d\\n' a 1 b 2 | x", "a-1\nb-2\n"},
		{"cat <<E | x\nhi $LANG\nE", "hi C\n"},
		{"x <<'E'\n$y\nE", "$y\n"},
		{"x <<< 'a b'", "a b\n"},
		{"{ echo a; echo b; } | x", "a\nb\n"},
		{"x <<-E\n\ta\n\tE", "a\n"},
		{"exec <<< a; x", "a\n"},
	} {
		s, err := Read(row.text, world())
		if err != nil {
			t.Errorf("%q: %v", row.text, err)
			continue
		}
		last := s.Commands[len(s.Commands)-1]
		if last.Stdin == nil || *last.Stdin != row.want {
			t.Errorf("%q: %v, want %q", row.text, last.Stdin, row.want)
		}
	}
	for _, text := range []string{"echo $SECRET | x", "a | x", "x", "printf 'a\\0b' | x", "printf '%q' a | x", "while a; do echo b; done | x"} {
		s, err := Read(text, world())
		if err != nil {
			t.Fatal(err)
		}
		if in := s.Commands[len(s.Commands)-1].Stdin; in != nil {
			t.Errorf("%q: input is %q, want unknown", text, *in)
		}
	}
}

func TestSimple(t *testing.T) {
	for text, want := range map[string]bool{
		"ls": true, "ls -l 'a b' \"c\"": true, "ls; ls": false, "ls > f": false, "ls &": false, "! ls": false, "X=1 ls": false,
		"ls $x": false, "ls *": false, "ls ~": false, "echo a": false, "eval ls": false, "command ls": false, "exec ls": false, "cd sub": false, "ls | cat": false, "$(a)": false, "": false,
	} {
		s, err := Read(text, world())
		if err != nil {
			t.Fatal(err)
		}
		if s.Simple != want {
			t.Errorf("%q: simple is %v, want %v", text, s.Simple, want)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, row := range []struct {
		text      string
		line, col int
	}{
		{"ls \"x", 1, 4}, {"ls\n)", 2, 1}, {"if a", 1, 1}, {"a\x00b", 0, 0}, {"\xff", 0, 0}, {strings.Repeat("a", maxText+1), 0, 0}, {strings.Repeat("(", 1000), 0, 0}, {"a <<E\nx", 1, 3},
	} {
		_, err := Read(row.text, world())
		var se *shelltext.SyntaxError
		if !errors.As(err, &se) || se.FaultCode() != "E1601" {
			t.Errorf("%.20q: %v, want a syntax error", row.text, err)
			continue
		}
		if se.Line != row.line || se.Col != row.col {
			t.Errorf("%.20q: at %d:%d, want %d:%d", row.text, se.Line, se.Col, row.line, row.col)
		}
	}
}

// Beyond the limits is one opaque command, and everything found before it stays.
func TestLimits(t *testing.T) {
	for _, text := range []string{
		"first; " + strings.Repeat("x; ", 300), "first | " + strings.Repeat("x | ", 5000) + "y", "first; " + strings.Repeat("x $(", 100) + strings.Repeat(")", 100),
		"first; f() { g; g; }; g() { h; h; }; h() { i; i; }; i() { j; j; }; f; " + strings.Repeat("for i in 1 2; do ", 20) + "x $i" + strings.Repeat("; done", 20),
		"first; eval 'eval \"eval \\\"eval x\\\"\"'", "first; . ./again.sh", "first; " + strings.Repeat("eval ", 200) + "x", "first {1..1000000}",
		"first; x=aaaaaaaa; " + strings.Repeat("x=$x$x; ", 60) + "a $x", "first; x=a; " + strings.Repeat("x=${x//a/aaaaaaaaaaaaaaaa}; ", 60) + "a $x",
		"first " + strings.Repeat("a ", 60000), "first; set -- " + strings.Repeat("a ", 60000) + "; for i; do ls $i; done; ls \"$*\"",
	} {
		s, err := Read(text, world())
		if err != nil {
			t.Errorf("%.40q: %v", text, err)
			continue
		}
		if len(s.Commands) == 0 || s.Commands[0].Argv[0] != "first" || len(s.Commands) > maxCommands+1 {
			t.Errorf("%.40q: %d commands", text, len(s.Commands))
		}
	}
}

func TestDialects(t *testing.T) {
	for _, row := range []struct {
		d          shelltext.Dialect
		text, want string
	}{
		{shelltext.POSIX, "$'\\x72m' a", "$\\x72m a"},
		{shelltext.POSIX, "echo 'a\\nb' | x", "(echo a\\nb); x"},
		{shelltext.POSIX, "pushd x", "pushd x"},
		{shelltext.POSIX, "a ~+/x", "a /ws/x; a ~+/x"},
		{shelltext.POSIX, "alias x=y", "(alias x=y); ?"},
		{shelltext.POSIX, "export x=a; $x", "(export x=a); a"},
		{shelltext.Mksh, "echo a | read x; $x", "(echo a); (read x); a"},
	} {
		o := world()
		o.Dialect = row.d
		s, err := Read(row.text, o)
		if err != nil {
			t.Errorf("%q: %v", row.text, err)
			continue
		}
		if got := briefs(s); got != row.want {
			t.Errorf("%q: %s, want %s", row.text, got, row.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"a | b > c; if d; then e; fi", "x=$(a); eval \"$x\"", "f() { f|f& }; f", "a <<E\n$(b)\nE", "echo ${x:-${y[1]}} $((1+2))", "for i in {1..3}; do cd $i; done", tenCommands, "a=(b c); \"${a[@]}\"", "[[ -v a[$(b)] ]]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read(text, world())
		if err != nil {
			var se *shelltext.SyntaxError
			var pe *errcode.Error
			if !errors.As(err, &se) && !errors.As(err, &pe) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		// What runs reads as what was judged.
		again, err := Read(s.Text, world())
		if err != nil {
			t.Fatalf("%q: printed %q: %v", text, s.Text, err)
		}
		if again.Text != s.Text {
			t.Fatalf("%q: printed %q, then %q", text, s.Text, again.Text)
		}
		for _, c := range s.Commands {
			if strings.HasPrefix(c.Why, "reading it failed") {
				t.Fatalf("%q: %s", text, c.Why)
			}
		}
		for _, fl := range s.Flows {
			if fl.From < 0 || fl.To < 0 || fl.From >= len(s.Commands) || fl.To >= len(s.Commands) {
				t.Fatalf("%q: flow %v of %d commands", text, fl, len(s.Commands))
			}
		}
	})
}
