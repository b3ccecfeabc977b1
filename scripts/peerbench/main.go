// Command peerbench asks the decision logic of other agents' command checkers about every
// row of the corpus and prints what the gate of this project would say of their answers,
// beside atip-exec's own in the same run. scripts/peers builds and starts it.
//
// Commands are classified and never run: a peer answers in a jail that holds itself and no
// program besides (jail.go), and a probe looks around in that jail before anything is asked.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/corpus"
)

func main() {
	inJail()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "peerbench:", err)
		os.Exit(1)
	}
}

// inJail is what this program is in a jail, where it does not return.
func inJail() {
	switch filepath.Base(os.Args[0]) {
	case "bash", "sh":
		// The stub that a jail offers in place of a shell: it reads nothing and does nothing.
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == "probe" {
		if err := probe(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// errNothing is why the exit status is not 0 although the table was printed.
var errNothing = errors.New("no peer was measured")

func measure(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("peerbench", flag.ContinueOnError)
	rowsDir := flags.String("corpus", "testdata/commands", "directory of the corpus")
	files := flags.String("files", "*", "only the files of the corpus with such names, without .jsonl")
	own := flags.String("atip-exec", "bin/atip-exec", "the program whose line is printed beside")
	adapters := flags.String("adapters", "scripts/peerbench", "directory of the adapters")
	scratch := flags.String("scratch", "", "directory that peers are installed into; what is there already is used again")
	asJSON := flags.Bool("json", false, "print one JSON document")
	only := flags.String("only", "", "names of the peers to measure, separated by commas; an empty list means all")
	every := flags.Int("every", 1, "ask every n-th row only, to try it out")
	list := flags.Bool("list", false, "print the names of the peers and stop")
	if err := flags.Parse(args); err != nil {
		return err
	}
	peers, err := choose(all(), *only)
	if err != nil {
		return err
	}
	if *list {
		for _, p := range peers {
			fmt.Fprintf(out, "%-14s %s\n", p.name, p.label)
		}
		return nil
	}
	if *scratch == "" {
		return errors.New("-scratch DIR is missing")
	}
	rows, err := corpus.Read(*rowsDir, *files)
	if err != nil {
		return err
	}
	rows = sample(rows, *every)
	b := bench{rows: rows, adapters: absolute(*adapters), scratch: absolute(*scratch), patience: 2 * time.Minute, log: os.Stderr}
	report, err := b.run(ctx, absolute(*own), peers)
	if err != nil {
		return err
	}
	if *asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		err = enc.Encode(report)
	} else {
		err = report.write(out)
	}
	if err == nil && report.measured() == 0 {
		err = errNothing
	}
	return err
}

func choose(peers []peer, names string) ([]peer, error) {
	if names == "" {
		return peers, nil
	}
	var chosen []peer
	for _, name := range strings.Split(names, ",") {
		found := false
		for _, p := range peers {
			if p.name == name {
				chosen, found = append(chosen, p), true
			}
		}
		if !found {
			return nil, fmt.Errorf("-only: there is no peer %q; -list names them", name)
		}
	}
	return chosen, nil
}

func sample(rows []corpus.Row, every int) []corpus.Row {
	if every <= 1 {
		return rows
	}
	var some []corpus.Row
	for i := 0; i < len(rows); i += every {
		some = append(some, rows[i])
	}
	return some
}

func absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return abs
}
