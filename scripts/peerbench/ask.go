package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// question and reply are the protocol of an adapter, one line each.
type question struct {
	ID  string `json:"id"`
	Cmd string `json:"cmd"`
	Cwd string `json:"cwd"`
}

type reply struct {
	ID     string `json:"id"`
	Answer string `json:"answer"`
	Error  string `json:"error"`
}

// decisions are what the answers mean in the words of the corpus.
func decisionOf(answer string) (string, bool) {
	switch answer {
	case "allow", "deny":
		return answer, true
	case "ask":
		return "confirm", true
	}
	return "", false
}

// adapter is a running one.
type adapter struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	lines    chan string
	said     *tail
	patience time.Duration
}

func start(cmd *exec.Cmd, patience time.Duration) (*adapter, error) {
	a := &adapter{cmd: cmd, lines: make(chan string), said: &tail{}, patience: patience}
	cmd.Stderr = a.said
	var err error
	if a.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(a.lines)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			a.lines <- lines.Text()
		}
	}()
	return a, nil
}

// ask waits for the decision on one command. Whatever is no clear answer is an error:
// a measurement with guesses in it is none.
func (a *adapter) ask(ctx context.Context, q question) (string, error) {
	raw, err := json.Marshal(q)
	if err != nil {
		return "", err
	}
	if _, err := a.in.Write(append(raw, '\n')); err != nil {
		return "", fmt.Errorf("the adapter ended%s", a.end().after(": "))
	}
	timer := time.NewTimer(a.patience)
	defer timer.Stop()
	select {
	case line, ok := <-a.lines:
		if !ok {
			return "", fmt.Errorf("the adapter ended%s", a.end().after(": "))
		}
		var r reply
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return "", fmt.Errorf("the adapter printed %.200q", line)
		}
		decision, known := decisionOf(r.Answer)
		switch {
		case r.ID != q.ID:
			return "", fmt.Errorf("the answer to %s is one to %q", q.ID, r.ID)
		case r.Error != "":
			return "", fmt.Errorf("%s: %s", q.ID, r.Error)
		case !known:
			return "", fmt.Errorf("%s: %q is no answer", q.ID, r.Answer)
		}
		return decision, nil
	case <-timer.C:
		return "", fmt.Errorf("%s: no answer in %v%s", q.ID, a.patience, a.end().after(": "))
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// end stops the adapter and everything in its jail, and returns what it said.
func (a *adapter) end() *tail {
	a.in.Close()
	a.cmd.Process.Kill()
	for range a.lines {
	}
	a.cmd.Wait()
	return a.said
}

// tail keeps the beginning and the end of what a program prints: npm says first what is
// wrong, Node last.
type tail struct {
	mu        sync.Mutex
	head, end []byte
}

const tailSize = 1000

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(p), tailSize-len(t.head))
	t.head = append(t.head, p[:n]...)
	t.end = append(t.end, p[n:]...)
	if over := len(t.end) - tailSize; over > 0 {
		t.end = append([]byte(nil), t.end[over:]...)
	}
	return len(p), nil
}

// after is the text on one line behind a prefix, "" without a text.
func (t *tail) after(prefix string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	words := strings.Fields(string(t.head) + string(t.end))
	if len(words) == 0 {
		return ""
	}
	return prefix + strings.Join(words, " ")
}

// batch asks atip-exec itself. Rows with files or variables of their own get a process of
// their own, since a batch looks at its surroundings once.
type batch struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

func startBatch(ctx context.Context, program, dir string, env []string) (*batch, error) {
	b := &batch{cmd: exec.CommandContext(ctx, program, "explain", "--batch")}
	b.cmd.Dir, b.cmd.Env = dir, env
	var err error
	if b.in, err = b.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	b.lines = bufio.NewScanner(out)
	b.lines.Buffer(nil, 16<<20)
	return b, b.cmd.Start()
}

func (b *batch) ask(q any) (string, error) {
	raw, err := json.Marshal(q)
	if err != nil {
		return "", err
	}
	if _, err := b.in.Write(append(raw, '\n')); err != nil {
		return "", err
	}
	if !b.lines.Scan() {
		return "", errors.Join(errors.New("atip-exec ended"), b.lines.Err())
	}
	var plan struct{ Decision string }
	if err := json.Unmarshal(b.lines.Bytes(), &plan); err != nil {
		return "", err
	}
	switch plan.Decision {
	case "allow", "confirm", "deny":
		return plan.Decision, nil
	}
	return "", fmt.Errorf("atip-exec answers %q", plan.Decision)
}

func (b *batch) end() {
	b.in.Close()
	b.cmd.Wait()
}
