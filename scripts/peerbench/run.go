package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/atip-dev/atip-exec/internal/corpus"
)

// bench is one measurement.
type bench struct {
	rows     []corpus.Row
	adapters string
	scratch  string
	patience time.Duration // for one answer
	log      io.Writer     // progress
}

// run asks everybody about every row. A peer that cannot be asked does not end it: the
// reason stands in its line. atip-exec has to answer.
func (b bench) run(ctx context.Context, own string, peers []peer) (*report, error) {
	w, err := corpus.NewWorld()
	if err != nil {
		return nil, err
	}
	defer w.Remove()
	r := newReport(b.rows)
	for _, p := range peers {
		fmt.Fprintf(b.log, "%s\n", p.label)
		score, err := b.peer(ctx, w, p)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r.add(p.label, p.version, score, err)
	}
	fmt.Fprintln(b.log, "atip-exec")
	score, err := b.own(ctx, w, own)
	if err != nil {
		return nil, err
	}
	r.add("atip-exec", "of this tree", score, nil)
	return r, nil
}

func (b bench) peer(ctx context.Context, w corpus.World, p peer) (*tally, error) {
	j := jail{adapters: b.adapters, world: w, stub: p.stub}
	var err error
	if j.bwrap, err = exec.LookPath("bwrap"); err != nil {
		return nil, fmt.Errorf("bubblewrap is missing, and nothing is asked outside of a jail: %w", err)
	}
	if j.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if p.source.needsNode() {
		if j.node, err = exec.LookPath("node"); err != nil {
			return nil, err
		}
		if j.node, err = filepath.EvalSymlinks(j.node); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(b.scratch, 0o755); err != nil {
		return nil, err
	}
	if j.installed, err = p.source.install(ctx, b.adapters, b.scratch); err != nil {
		return nil, fmt.Errorf("not installed: %w", err)
	}
	if err := j.check(ctx); err != nil {
		return nil, err
	}
	cmd, err := j.command(ctx, p.argv(found{node: jailNode})...)
	if err != nil {
		return nil, err
	}
	a, err := start(cmd, b.patience)
	if err != nil {
		return nil, err
	}
	defer a.end()
	return b.score(w, func(r *corpus.Row) (string, error) {
		return a.ask(ctx, question{ID: r.ID, Cmd: r.Text(), Cwd: filepath.Join(w.Dir, r.Cwd)})
	})
}

func (b bench) own(ctx context.Context, w corpus.World, program string) (*tally, error) {
	main, err := startBatch(ctx, program, w.Dir, w.Environ())
	if err != nil {
		return nil, err
	}
	defer main.end()
	return b.score(w, func(r *corpus.Row) (string, error) {
		q := map[string]any{"id": r.ID, "cwd": filepath.Join(w.Dir, r.Cwd)}
		if r.Cmd != nil {
			q["cmd"] = *r.Cmd
		} else {
			q["argv"] = r.Argv
		}
		if len(r.Files)+len(r.Env) == 0 {
			return main.ask(q)
		}
		env := w.Environ()
		for name, value := range r.Env {
			env = append(env, name+"="+value)
		}
		single, err := startBatch(ctx, program, w.Dir, env)
		if err != nil {
			return "", err
		}
		defer single.end()
		return single.ask(q)
	})
}

// tally is a score and the rows that were allowed and must not be.
type tally struct {
	*corpus.Score
	unsafe []string
}

// score puts the files of each row into the world, asks, and counts.
func (b bench) score(w corpus.World, ask func(*corpus.Row) (string, error)) (*tally, error) {
	s := &tally{Score: corpus.NewScore()}
	for i := range b.rows {
		r := &b.rows[i]
		undo, err := w.Place(r)
		if err != nil {
			return nil, err
		}
		decision, err := ask(r)
		undo()
		if err != nil {
			return nil, fmt.Errorf("row %d of %d: %w", i+1, len(b.rows), err)
		}
		before := s.Unsafe.Hit
		s.Add(r, decision, nil)
		if s.Unsafe.Hit > before {
			s.unsafe = append(s.unsafe, r.ID)
		}
	}
	return s, nil
}
