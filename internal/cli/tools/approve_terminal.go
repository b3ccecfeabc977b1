package tools

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/tty"
)

// typeAheadPause is how long what was typed before the question is thrown away.
const typeAheadPause = 500 * time.Millisecond

// terminal is the terminal of the person: opened by its fixed name, so that nobody
// can hand us another.
type terminal struct {
	in, out *os.File
}

// openTerminal opens the terminal of this process. Standard input and output must be
// that same terminal: a pipe there means that something else types and reads.
func openTerminal() (*terminal, error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("there is no terminal here")
	}
	if !tty.IsControlling(int(os.Stdin.Fd())) || !tty.IsControlling(int(os.Stdout.Fd())) {
		f.Close()
		return nil, errors.New("standard input and output are not this terminal")
	}
	return &terminal{in: f, out: f}, nil
}

// Close releases the terminal.
func (t *terminal) Close() { t.in.Close() }

func (t *terminal) say(text string) error {
	_, err := io.WriteString(t.out, text)
	return err
}

func (t *terminal) show(r approve.Request, times int, limit time.Duration) error {
	text := render(r, times)
	if limit > 0 {
		text += fmt.Sprintf("%-10s no grant counts longer than %v here (approval.maxAge)\n", "Age", limit)
	}
	return t.say(text)
}

// confirm asks; the default is no.
func (t *terminal) confirm(r approve.Request) (bool, error) {
	serious, named := grave(r)
	question, last := "Type yes to approve: ", r.Digest[len(r.Digest)-4:]
	if serious {
		question = "This can destroy, cannot be undone or costs money. Type the last four characters of the digest to approve: "
		if len(named) > 0 {
			question = "This can destroy, cannot be undone or costs money. Type " + visible(named[0]) + ", or the last four characters of the digest, to approve: "
		}
	}
	answer, err := t.ask(question)
	if err != nil {
		return false, err
	}
	if !serious {
		return answer == "yes", nil
	}
	if answer == last {
		return true, nil
	}
	return len(named) > 0 && answer == named[0], nil
}

// ask puts a question and reads one line. What was typed ahead does not count.
func (t *terminal) ask(question string) (string, error) {
	if err := flush(t.in); err != nil {
		return "", err
	}
	time.Sleep(typeAheadPause)
	if err := flush(t.in); err != nil {
		return "", err
	}
	if err := t.say(question); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(io.LimitReader(t.in, 4096)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", err
	}
	return strings.TrimRight(answer, "\r\n"), nil
}
