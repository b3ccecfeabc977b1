package approvals

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/tty"
)

// typeAheadPause is how long what was typed before the question is thrown away.
const typeAheadPause = 500 * time.Millisecond

// Terminal is the terminal of the person: opened by its fixed name, so that nobody
// can hand us another.
type Terminal struct {
	in, Out *os.File
}

// OpenTerminal opens the terminal of this process. Standard input and output must be
// that same terminal: a pipe there means that something else types and reads.
func OpenTerminal() (*Terminal, error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("there is no terminal here")
	}
	if !tty.IsControlling(int(os.Stdin.Fd())) || !tty.IsControlling(int(os.Stdout.Fd())) {
		f.Close()
		return nil, errors.New("standard input and output are not this terminal")
	}
	return &Terminal{in: f, Out: f}, nil
}

// Close releases the terminal.
func (t *Terminal) Close() { t.in.Close() }

// Say prints on the terminal.
func (t *Terminal) Say(text string) error {
	_, err := io.WriteString(t.Out, text)
	return err
}

func (t *Terminal) show(r approve.Request, times int, limit time.Duration) error {
	text := render(r, times)
	if limit > 0 {
		text += fmt.Sprintf("%-10s no grant counts longer than %v here (approval.maxAge)\n", "Age", limit)
	}
	return t.Say(text)
}

// confirm asks; the default is no.
func (t *Terminal) confirm(r approve.Request) (bool, error) {
	serious, named := grave(r)
	question, last := "Type yes to approve: ", r.Digest[len(r.Digest)-4:]
	if serious {
		question = "This can destroy, cannot be undone or costs money. Type the last four characters of the digest to approve: "
		if len(named) > 0 {
			question = "This can destroy, cannot be undone or costs money. Type " + answer.Visible(named[0]) + ", or the last four characters of the digest, to approve: "
		}
	}
	answer, err := t.Ask(question)
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

// Confirm puts a question, and says what was not done unless the answer is yes.
func (t *Terminal) Confirm(question, undone string) error {
	answer, err := t.Ask(question)
	if err == nil && answer != "yes" {
		err = Refused(undone)
	}
	return err
}

// Ask puts a question and reads one line. What was typed ahead does not count.
func (t *Terminal) Ask(question string) (string, error) {
	if err := flush(t.in); err != nil {
		return "", err
	}
	time.Sleep(typeAheadPause)
	if err := flush(t.in); err != nil {
		return "", err
	}
	if err := t.Say(question); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(io.LimitReader(t.in, 4096)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", err
	}
	return strings.TrimRight(answer, "\r\n"), nil
}
