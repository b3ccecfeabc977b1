package filter

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"hash/maphash"
)

// tagDomain separates our use of the key from any other.
const tagDomain = "atip-redact-v1\x00"

// tagHash makes the tag of a value that is read in pieces.
type tagHash struct {
	mac hash.Hash
	n   int
}

func (s *Set) newTag() *tagHash {
	key := s.key
	if s.loadKey != nil {
		key = s.loadKey()
	}
	t := &tagHash{mac: hmac.New(sha256.New, key[:])}
	t.mac.Write([]byte(tagDomain))
	return t
}

// reset makes it ready for another value.
func (t *tagHash) reset() {
	t.mac.Reset()
	t.mac.Write([]byte(tagDomain))
	t.n = 0
}

func (t *tagHash) write(p []byte) {
	t.mac.Write(p)
	t.n += len(p)
}

// sum returns six hex digits: four would collide in 7 % of sets of 100 values.
func (t *tagHash) sum() string {
	var buf [sha256.Size]byte
	return hex.EncodeToString(t.mac.Sum(buf[:0])[:3])
}

// minTagged is the length from which a value gets a tag. Shorter ones could be
// guessed against it.
const minTagged = 12

// tagger makes the tags of whole values for one stream, with one keyed hash. It remembers some:
// what is printed once is often printed again.
type tagger struct {
	mac   *tagHash
	seed  maphash.Seed
	slots []tagSlot
}

type tagSlot struct {
	value []byte
	tag   string
}

const maxTags = 64

// tagOf returns the tag of a value.
func (w *Writer) tagOf(value []byte) string {
	if len(value) < minTagged {
		return ""
	}
	t := &w.tags
	if t.mac == nil {
		t.mac, t.seed, t.slots = w.set.newTag(), maphash.MakeSeed(), make([]tagSlot, maxTags)
	}
	slot := &t.slots[maphash.Bytes(t.seed, value)%maxTags]
	if !bytes.Equal(slot.value, value) {
		t.mac.reset()
		t.mac.write(value)
		slot.value, slot.tag = append(slot.value[:0], value...), t.mac.sum()
	}
	return slot.tag
}
