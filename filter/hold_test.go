package filter

import (
	"io"
	"os"
	"strings"
	"testing"
)

// heads are what a value may begin with that could also be something in front of it: the whole or a part of an
// operator, a quote, a mark, a word of a sentence. In each _ is a blank.
var heads = strings.Fields("+ / // = == - -- -> o or or_ ( (( { ? ?? ! !! ~ ^ | || < << & &g % %3 %20 $ @ ' \" \\ \\\\ ` : :: . ... .. # * ** is_ to_ for_ Some( string( 1_ 12 => x r b' → [ [1 [[ [- {+ q{ " +
	"__ ___ \\n \\u \\u0 &quot; ; , ,_ ]_ )_ REG_ md5 &lt; <b> as_ by_ a ab abc_ abcdefgh ed_ changed_to_ generated_for_ generated:_ len=20)_ string)_ 1) 1)_ $1_=_ x) x)_ user: user_/_ \"user\", 'x', (x =\" u0022 " +
	"x\"_ x\",_\" old_->_ \"old\"_->_ [-x-]{+ </b> &lt;b Bearer_ Basic_ Digest_ {x x} -_ --x_ -AsPlainText_ #1:_ (x):_ (x)_ [x]_ [x]:_ ...:_ —_ |_ ||_ %22 %20%20 !!str_ &a_ *a_ &x;_ x= x: x:_ x_=_ x_=>_ name= A_B= " +
	"was_ has_been_ set_to_ from_a_to_ from_ of_x:_ bob/ y\"_:_\" PLAIN_ REG_SZ_ 7_ 1_md5_ with_x_by_ by_' ENC {\"value\":_\" ,_value:_ ,ParameterValue= ><b> _x=\"y\"> </th><td> ).fill(\" \").fill(\" (\" x(\" &T{\" []byte(\" " +
	"x_||_\" x_??_\" x_or_\" @\" string(5)_\" ${X:- {{_x_|_default(' os.getenv(\"X\",_\" 0x1f,_0x sha256: ghp_ eyJ [REDACTED: [REDACTED:x]_ https:// https://u: $(x) $X {{x}} <x> null none true ab- ab. ab/ \xe2 \xe2\x86 \xef\xbc")

// TestHeads: what may stand in front of a value, or be its beginning, hangs on no cut. HEADS=all
// takes each head in front of each value, else one of a few.
func TestHeads(t *testing.T) {
	s := testSet(t, Config{NoMemory: true})
	share := 24
	if os.Getenv("HEADS") == "all" {
		share = 1
	}
	turn := 0
	for _, r := range formRows {
		for _, text := range r.yes {
			before, after, _ := strings.Cut(expandMarked(t, text, 11), "‹")
			after = strings.NewReplacer("‹", "", "›", "").Replace(after)
			for _, head := range heads {
				head = strings.ReplaceAll(head, "_", " ")
				for _, left := range []string{before, strings.TrimRight(before, " "), before + " ", before + "\n"} {
					if turn++; turn%share != 0 {
						continue
					}
					in := left + head + after
					want := filterAll(t, s, in)
					for cut := max(1, len(left)-2); cut < min(len(in), len(left)+len(head)+6); cut++ {
						if got := filterCuts(t, s, in, cut, len(in)); got != want {
							t.Errorf("%s: %q cut at %d\ngot  %q\nwant %q", r.form, in, cut, got, want)
						}
					}
					if got := filterCuts(t, s, in, 1); got != want {
						t.Errorf("%s: %q byte by byte\ngot  %q\nwant %q", r.form, in, got, want)
					}
				}
			}
		}
	}
}

// TestOpenEscape: a backslash is the last byte that is there, inside quotes. It once ended the stream.
func TestOpenEscape(t *testing.T) {
	s := testSet(t, Config{})
	for _, in := range []string{"INSERT INTO u (name, password) VALUES ('bob', 'ab\\", "INSERT INTO u (name, password) VALUES (\"\\", "rabbitmqctl add_user 'b\\", "setAuth('b\\"} {
		for _, rest := range []string{"", "'", "'" + tokens(t, "{alnum:20}") + "');\nmore\n"} {
			if got := filterCuts(t, s, in+rest, len(in), 100); !strings.HasPrefix(got, in[:7]) || strings.HasSuffix(rest, "more\n") && !strings.HasSuffix(got, "more\n") {
				t.Errorf("%q, then %q: %q", in, rest, got)
			}
		}
	}
}

// TestNameBefore: what a name says does not hang on what stood behind the same name before.
func TestNameBefore(t *testing.T) {
	s := testSet(t, Config{NoMemory: true})
	value := tokens(t, "{base64:86}==")
	for _, name := range []string{"key", "keys", "KEY"} {
		for _, sign := range []string{": ", " = ", "=", "\": \""} {
			secret := "\n" + name + sign + value + "\n"
			alone := filterAll(t, s, secret)
			for _, before := range []string{",", ";", ")", "]", ".", "\n", "|"} {
				if got := filterAll(t, s, "\n"+name+before+" x\n"+secret); !strings.HasSuffix(got, alone) {
					t.Errorf("%q behind %q: got %q, want %q", secret, name+before, got, alone)
				}
			}
		}
	}
}

// TestCountsAtCut: what is counted of a text hangs on no cut, where secrets crowd and elsewhere. The output shows a difference
// only where it decides whether a block jams.
func TestCountsAtCut(t *testing.T) {
	s := testSet(t, Config{NoMemory: true})
	for _, crowded := range []bool{false, true} {
		counts := func(in string, sizes ...int) (jam, found crowd) {
			w := s.Writer(io.Discard, Stdout)
			w.e.crowd.over[0] = crowded
			for i := 0; len(in) > 0; i++ {
				n := min(sizes[min(i, len(sizes)-1)], len(in))
				if _, err := io.WriteString(w, in[:n]); err != nil {
					t.Fatal(err)
				}
				in = in[n:]
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			return w.e.jam, w.e.crowd
		}
		for _, r := range formRows {
			for _, text := range r.yes {
				in := strings.NewReplacer("‹", "", "›", "").Replace(expandMarked(t, text, 11)) + "\n"
				jam, found := counts(in, len(in))
				for cut := 1; cut < len(in); cut++ {
					for _, rest := range []int{3, len(in)} {
						if j, f := counts(in, cut, rest); j != jam || f != found {
							t.Errorf("%s: %q cut at %d, then by %d: counts %v and %v, want %v and %v", r.form, in, cut, rest, j.found[0], f.found[0], jam.found[0], found.found[0])
						}
					}
				}
			}
		}
	}
}

// TestNameGone: a value that a label names is judged although its name is no more among the bytes that stay. That once
// ended the stream.
func TestNameGone(t *testing.T) {
	s := testSet(t, Config{NoMemory: true})
	log := strings.Repeat("2026-11-27 10:00:00 nothing happened on this day\n", 600)
	text := "$ kubectl describe secret app\n" + strings.Repeat("  - a line of it\n", 20) + tokens(t, "  value = \"{alnum:32}\"\n  - more\n")
	for skip := 0; skip < piece/4; skip += 100 {
		in := log[skip:] + text + log
		want := filterAll(t, s, in)
		if !strings.Contains(want, "value = \"[") {
			t.Fatalf("behind %d bytes: %q", len(log)-skip, want[len(log)-skip:][:500])
		}
		if got := filterCuts(t, s, in, 64); got != want {
			t.Fatalf("behind %d bytes: %s", len(log)-skip, firstDifference(got, want))
		}
	}
}

// TestPromptInCrowd: a prompt goes at once where secrets crowd, too.
func TestPromptInCrowd(t *testing.T) {
	s := testSet(t, Config{NoMemory: true})
	for _, in := range []string{"Password: ", "enter secret ", "token="} {
		var out strings.Builder
		w := s.Writer(&out, Stdout)
		w.e.crowd.over[0] = true
		for k := range in {
			if _, err := w.Write([]byte{in[k]}); err != nil {
				t.Fatal(err)
			}
		}
		if out.String() != in {
			t.Errorf("of %q %q is there", in, out.String())
		}
	}
}
