package effects

import (
	"strings"

	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
)

// identified is what is known of the file that a command word names.
type identified struct {
	id      trust.Identity
	verdict trust.Verdict
	missing error
	file    policy.FileFacts
	trust   policy.TrustFacts
}

// recall takes over what an earlier step found out about the same word in the same
// directory. It is the same file, which that step holds.
func (c *collector) recall(s *step.Step) bool {
	have := c.found[s.Argv[0]+"\x00"+s.Cwd+"\x00"+c.moved]
	if have == nil || len(s.Argv) > 1 && strings.HasPrefix(s.Argv[1], "+") {
		return false
	}
	s.ID, s.Verdict, s.Missing, s.File, s.Trust = have.id, have.verdict, have.missing, have.file, have.trust
	s.File.Names = s.File.Names[:len(s.File.Names):len(s.File.Names)]
	return true
}

func (c *collector) remember(s *step.Step) {
	if c.found == nil {
		c.found = map[string]*identified{}
	}
	know := &identified{s.ID, s.Verdict, s.Missing, s.File, s.Trust}
	c.found[s.Argv[0]+"\x00"+s.Cwd+"\x00"+c.moved] = know
	if c.moved == "" && c.found[s.Argv[0]] == nil {
		c.found[s.Argv[0]] = know
	}
}

// Memo is what the plans of a batch share: none of them starts anything, so that
// a file need not be opened again for each.
type Memo struct {
	tools map[string]*identified
	docs  map[shims.Query]shims.Found
	paths map[string][]string // of the policy, by its key
}

// maxMemo bounds what a batch keeps.
const maxMemo = 4096

func NewMemo() *Memo {
	return &Memo{tools: map[string]*identified{}, docs: map[shims.Query]shims.Found{}, paths: map[string][]string{}}
}

// known is what was identified before; a plan adds to it.
func (m *Memo) known() map[string]*identified {
	if m == nil {
		return nil
	}
	if len(m.tools) > maxMemo {
		clear(m.tools)
	}
	return m.tools
}

// Lookup finds metadata, once for each question.
func (m *Memo) Lookup(q shims.Query, dirs shims.Dirs) (shims.Found, error) {
	if m == nil {
		return shims.Lookup(q, dirs)
	}
	if found, ok := m.docs[q]; ok {
		return found, nil
	}
	found, err := shims.Lookup(q, dirs)
	if err == nil && len(m.docs) < maxMemo {
		m.docs[q] = found
	}
	return found, err
}

// Named is what the patterns under a key of the policy stand for, looked for once.
func (m *Memo) Named(key string, search func() ([]string, error)) ([]string, error) {
	if m == nil {
		return search()
	}
	have, ok := m.paths[key]
	if ok {
		return have, nil
	}
	have, err := search()
	if err == nil {
		m.paths[key] = have
	}
	return have, err
}
