package completions

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/cli/approvals"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/runfile"
	"github.com/atip-dev/atip-exec/internal/undo"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/shims"
)

// CompleteVerb is what the completion scripts call: `atip __complete WHAT BEGUN -- WORDS…`,
// where BEGUN is the word before the cursor and WORDS are those in front of it.
const CompleteVerb = "__complete"

// Limits of one answer: a TAB waits for it.
const (
	completeTime  = 500 * time.Millisecond
	completeItems = 1000
)

// candidate is a word that could stand at the cursor, and a text beside it.
type candidate struct{ word, text string }

// Complete prints the words that begin as the one before the cursor, one on a line with a tab
// and a text. It starts nothing and writes nothing; an error, or an answer that takes too long,
// is no words.
func Complete(c *cli.Console, args []string) int {
	if len(args) < 2 || len(args) > 2 && args[2] != "--" {
		return 0
	}
	var words []string
	if len(args) > 3 {
		words = args[3:]
	}
	what, begun := args[0], args[1]
	ask := func() ([]candidate, string) { return candidates(cli.Offer(what), words, begun), "" }
	if what == offerLine || what == offerPlace {
		begun = strings.TrimPrefix(begun, lineMark)
		ask = func() ([]candidate, string) {
			_, at, err := answer.Home()
			if err != nil {
				return nil, ""
			}
			list, adds := ofLine(at, words, begun)
			if what == offerLine && len(list) == 0 && adds == addsTools {
				list = candidates(cli.OfferTools, nil, begun)
			}
			return list, adds
		}
	}
	if begun == ":" || begun == "=" {
		begun = "" // bash makes words of these
	}
	list, adds := within(completeTime, ask)
	var b strings.Builder
	var said []string
	for _, one := range list {
		// A shell puts the word on its line: one that it would read in another way is left out.
		if one.word == "" || !strings.HasPrefix(one.word, begun) || strings.ContainsFunc(withoutFlag(one.word), special) || slices.Contains(said, one.word) {
			continue
		}
		if said = append(said, one.word); len(said) > completeItems {
			break
		}
		b.WriteString(strings.TrimSuffix(one.word+"\t"+answer.Visible(summaryOf(strings.Join(strings.Fields(one.text), " "))), "\t") + "\n")
	}
	if what == offerPlace && adds != "" && (len(said) == 0 || adds == addsTools) {
		b.WriteString("\t" + adds + "\n")
	}
	_ = c.Text(b.String()) // a shell that went away needs no words
	return 0
}

// within returns what ask finds, nothing if that takes longer than limit or breaks.
func within(limit time.Duration, ask func() ([]candidate, string)) ([]candidate, string) {
	type line struct {
		list []candidate
		adds string
	}
	found := make(chan line, 1)
	go func() {
		defer func() {
			if recover() != nil {
				found <- line{}
			}
		}()
		list, adds := ask()
		found <- line{list, adds}
	}()
	select {
	case a := <-found:
		return a.list, a.adds
	case <-time.After(limit):
		return nil, ""
	}
}

// withoutFlag is the value of a flag in a word that holds both, else the word.
func withoutFlag(word string) string {
	if _, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(word, "--") {
		return value
	}
	return word
}

// special reports a character that means something to a shell, or that it would quote.
func special(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-.:/@+,%", r)
}

// candidates reads what this machine has; nil if it cannot be read.
func candidates(what cli.Offer, words []string, begun string) []candidate {
	dirs, at, err := answer.Home()
	if err != nil {
		return nil
	}
	switch what {
	case cli.OfferFunctions, cli.OfferParameters:
		return ofRunfile(what, words)
	case cli.OfferTools:
		var list []candidate
		for _, name := range shims.Names(at, begun) {
			list = append(list, candidate{name, ""})
		}
		return list
	case cli.OfferCommand:
		return ofCommand(at, words, begun)
	case cli.OfferRequests:
		return openRequests()
	case cli.OfferQuarantines:
		return quarantines(dirs)
	case cli.OfferUndo:
		return undoPoints(dirs, words)
	}
	return nil
}

// typedValues reads the words in front of the cursor as those of a verb.
func typedValues(verb string, words []string) *cli.Values {
	if i := slices.Index(words, verb); i >= 0 {
		words = words[i+1:]
	}
	spec, _ := cli.SpecOf(verb)
	v, err := cli.Parse(spec, words, func(string) string { return "" })
	if err != nil {
		return &cli.Values{}
	}
	return v
}

// ofRunfile offers functions, or values of the parameter that comes next.
func ofRunfile(what cli.Offer, words []string) []candidate {
	v := typedValues("run", words)
	if dir := v.Get("working-dir"); dir != "" && os.Chdir(dir) != nil {
		return nil
	}
	f, err := answer.Runfile(v.Get("runfile"))
	if err != nil {
		return nil
	}
	var list []candidate
	if what == cli.OfferFunctions {
		for _, fn := range f.Functions {
			if fn.Safe || !v.Has("readonly") {
				list = append(list, candidate{fn.Name, fn.Desc})
			}
		}
		return list
	}
	// `a b` is a:b; bash makes a word of each colon.
	begun := strings.Join(slices.DeleteFunc(slices.Clone(v.Rest), func(w string) bool { return w == ":" }), ":") + ":"
	for _, fn := range f.Functions {
		if rest, ok := strings.CutPrefix(fn.Name, begun); ok && !strings.Contains(rest, ":") {
			list = append(list, candidate{rest, fn.Desc})
		}
	}
	fn, typed, err := f.Find(v.Rest)
	if err != nil || len(fn.Params) == 0 {
		return list
	}
	p := fn.Params[min(len(typed), len(fn.Params)-1)]
	if len(typed) >= len(fn.Params) && !p.Rest {
		return list
	}
	text := strings.TrimSpace(p.Name + ", " + p.Type.String() + ". " + p.Desc)
	if p.HasDefault {
		list = append(list, candidate{p.Default, text + " (default)"})
	}
	if p.Type == runfile.Boolean {
		list = append(list, candidate{"true", text}, candidate{"false", text})
	}
	return list
}

func openRequests() []candidate {
	a, err := approvals.Open()
	if err != nil {
		return nil
	}
	open, err := approve.List(a.Requests)
	if err != nil {
		return nil
	}
	var list []candidate
	for _, r := range open {
		list = append(list, candidate{r.ID, quote.Words(answer.Texts(r.Bound["argv"]))})
	}
	return list
}

func quarantines(dirs place.Dirs) []candidate {
	all, err := sandbox.Quarantines(dirs.State)
	if err != nil {
		return nil
	}
	var list []candidate
	for _, q := range all {
		text := ""
		if len(q.Files) > 0 {
			text = q.Files[0].Path()
		}
		list = append(list, candidate{q.Run, text})
	}
	return list
}

// undoPoints offers the runs and checkpoints of the workspace, the newest first.
func undoPoints(dirs place.Dirs, words []string) []candidate {
	dir := typedValues("undo", words).Get("directory")
	dir = cmp.Or(dir, ".")
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	root, _, _ := place.FindWorkspace(place.Resolve(dir), dirs, os.Geteuid())
	runs := undo.Peek(undo.Place{Root: root, Base: dirs.Undo(), UID: os.Geteuid()})
	var list []candidate
	for _, r := range slices.Backward(runs) {
		word := r.Run
		if r.Name != "" {
			word = r.Name
		}
		list = append(list, candidate{word, r.Time.Local().Format(time.DateTime) + " " + answer.UndoTitle(r)})
	}
	return list
}
