//go:build !linux

package nest

import (
	"errors"
	"os"
	"syscall"
)

var errNotHere = errors.New("not on this system")

// pair is for systems where a run inside a run cannot write the log itself.
func pair() (from, to *os.File, err error) { return nil, nil, errNotHere }

func inherited(int) *os.File { return nil }

func answerSocket(*os.File) bool { return false }

func passable([]*os.File) bool { return false }

func send(*os.File, []byte, ...*os.File) error { return errNotHere }

func sendNow(*os.File, []byte) {}

func receive(*os.File, []byte, bool) (int, []*os.File, int, error) { return 0, nil, 0, errNotHere }

func connect([]*os.File) error { return errNotHere }

func helperAttributes() *syscall.SysProcAttr { return nil }

func standOf(int) Stand { return Stand{} }

func (*Host) proven(*os.File, int) Stand { return Stand{} }

type ahead struct{ *worker }

// Coming does nothing on systems without stand-ins.
func (l *Listener) Coming(int, []string, string) {}

func (b *broker) forget(int) {}

func (b *broker) begun(int, *Own, []*os.File) *ahead { return nil }

func connectable([]*os.File) bool { return false }

// Adopt does nothing on systems without stand-ins.
func (o *Own) Adopt() {}
