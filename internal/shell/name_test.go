package shell

import "testing"

// TestNames: text without a slash that is not known stays in the directory in front of it.
func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		`touch "build/$(basename "$X").o"`:                         "build/*.o",
		`b=$(basename "$X" .c); touch "build/${b%.x}.o"`:           "build/*.o",
		`touch "build/${X##*/}.o"`:                                 "build/*.o",
		`touch "build/${X//\//_}.o"`:                               "build/*.o",
		`n=$(echo "$X" | tr / _); touch "/tmp/$n.txt"`:             "/tmp/*.txt",
		`n=$(echo "$X" | sed 's|/|_|g'); touch "/tmp/$n.txt"`:      "/tmp/*.txt",
		`touch "build/$X.o"`:                                       "",
		`touch "build/$(basename "$X")"`:                           "", // it may be ..
		`touch "build/.$(basename "$X")"`:                          "",
		`touch build/$(basename "$X").o`:                           "", // it may be two words
		`touch "build/$(dirname "$X").o"`:                          "",
		`touch "build/$(basename "$X")/x.o"`:                       "",
		`touch "build/${X#*/}.o"`:                                  "",
		`touch "build/${X//a/_}.o"`:                                "",
		`touch "build/${X//\//\/..\/}.o"`:                          "",
		`n=$(echo "$X" | tr a /); touch "/tmp/$n.txt"`:             "",
		`n=$(echo "$X" | sed 's|/|_|'); touch "/tmp/$n.txt"`:       "",
		`n=$(basename "$X"; cat y); touch "/tmp/$n.txt"`:           "",
		`basename() { cat y; }; touch "/tmp/$(basename "$X").txt"`: "",
		`PATH=/x:$PATH; touch "/tmp/$(basename "$X").txt"`:         "",
	} {
		s, err := Read(text, Options{Cwd: "/w"})
		if err != nil {
			t.Fatal(err)
		}
		last := s.Commands[len(s.Commands)-1]
		if got, _ := Within(last.Argv[len(last.Argv)-1]); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestTemporary: the names that mktemp gives.
func TestTemporary(t *testing.T) {
	for text, want := range map[string]string{
		`x=$(mktemp); cat "$x"`:                        "/tmp/tmp.0000000000",
		`x=$(mktemp -d -t a.XXXX); cat "$x/y"`:         "/tmp/a.XXXX/y",
		`x=$(mktemp /tmp/a.XXXXXX.json); cat "$x"`:     "/tmp/a.XXXXXX.json",
		`x=$(mktemp -p build a.XXXX); cat "$x"`:        "build/a.XXXX",
		`x=$(mktemp --suffix=.py); cat "$x"`:           "/tmp/tmp.0000000000.py",
		`x=$(mktemp --suffix=/../y); cat "$x"`:         Hole,
		`x=$(mktemp -t ../a.XXXX); cat "$x"`:           Hole,
		`x=$(mktemp -p "$Y" a.XXXX); cat "$x"`:         Hole,
		`x=$(mktemp abc); cat "$x"`:                    Hole,
		`for i in a b; do x=$(mktemp); cat "$x"; done`: "/tmp/tmp.0000000000",
	} {
		s, err := Read(text, Options{Cwd: "/w"})
		if err != nil {
			t.Fatal(err)
		}
		last := s.Commands[len(s.Commands)-1]
		if got := last.Argv[len(last.Argv)-1]; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
