package answer

import (
	"fmt"
	"time"

	"github.com/atip-dev/atip-exec/internal/cli"
)

// Progress is one line on the terminal, rewritten in place. It begins after 300 ms:
// what is over before that needs none.
type Progress struct {
	c     *cli.Console
	on    bool
	shown bool
	next  time.Time
}

// NewProgress shows progress on stderr, if that is a terminal.
func NewProgress(c *cli.Console) *Progress {
	return &Progress{c: c, on: c.ErrTTY && !c.Quiet && c.Mode != cli.JSON && c.Mode != cli.JSONL, next: time.Now().Add(300 * time.Millisecond)}
}

// Show replaces the line: done of all, and what is at hand.
func (p *Progress) Show(done, all int, name string) {
	now := time.Now()
	if !p.on || now.Before(p.next) && done < all || now.Before(p.next) && !p.shown {
		return
	}
	p.next, p.shown = now.Add(100*time.Millisecond), true
	if len(name) > 40 {
		name = name[:40]
	}
	fmt.Fprintf(p.c.Err, "\r\x1b[K%d/%d %s", done, all, Plain(name))
}

// Clear takes the line away.
func (p *Progress) Clear() {
	if p.shown {
		fmt.Fprint(p.c.Err, "\r\x1b[K")
	}
}
