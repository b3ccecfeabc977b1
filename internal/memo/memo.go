// Package memo keeps what several plans look up together.
package memo

import (
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
)

// Memo is what several plans share: those of a batch, none of which starts anything, so that a file need
// not be opened again for each; or those of the starts of one run.
type Memo struct {
	tools  map[string]*Program // of a batch
	system map[string]lasting  // of a run: programs of the system by their paths, as long as they are the same files
	docs   map[shims.Query]shims.Found
	paths  map[string][]string // of the policy, by its key
	yes    map[string]bool
}

type lasting struct {
	file  trust.Lasting
	known *Program
}

// maxMemo bounds what a batch keeps.
const maxMemo = 4096

// New is for a batch.
func New() *Memo {
	return &Memo{tools: map[string]*Program{}, docs: map[shims.Query]shims.Found{}, paths: map[string][]string{}, yes: map[string]bool{}}
}

// NewForRun is for the starts of one run.
func NewForRun() *Memo {
	m := New()
	m.tools, m.system = nil, map[string]lasting{}
	return m
}

// OfRun reports whether files are looked at again, as what is planned will start.
func (m *Memo) OfRun() bool { return m != nil && m.system != nil }

// Lasting is what is known of a program of the system that is the same file still.
func (m *Memo) Lasting(word string) *Program {
	if !m.OfRun() {
		return nil
	}
	have, ok := m.system[word]
	if !ok || !have.file.Lasts() {
		return nil
	}
	return have.known
}

// Keep holds on to what was found out about a program of the system.
func (m *Memo) Keep(word string, file trust.Lasting, known *Program) {
	if len(m.system) < maxMemo {
		m.system[word] = lasting{file, known}
	}
}

// Holds is the answer to a question about this machine, asked once.
func (m *Memo) Holds(question string, ask func() bool) bool {
	if m == nil {
		return ask()
	}
	answer, ok := m.yes[question]
	if !ok {
		answer = ask()
		m.yes[question] = answer
	}
	return answer
}

// Known is what was identified before; a plan adds to it.
func (m *Memo) Known() map[string]*Program {
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

// Named is what the patterns under a key of the policy stand for, looked for once in a batch: a run makes
// files that they name.
func (m *Memo) Named(key string, search func() ([]string, error)) ([]string, error) {
	if m == nil || m.OfRun() {
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

// Program is what is known of the file that a command word names.
type Program struct {
	ID      trust.Identity
	Verdict trust.Verdict
	Missing error
	File    policy.FileFacts
	Trust   policy.TrustFacts
}
