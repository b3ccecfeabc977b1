package filter

import "crypto/rand"

// TagKey keys the tags of placeholders: equal values get equal tags within a
// login, and nobody without the key can test a guess against a tag.
type TagKey [32]byte

// LoadTagKey reads the key of this login or makes one. If neither directory can
// be used it returns a random key, good for this run, and the error that says why.
func LoadTagKey(runtimeDir, stateDir string) (TagKey, error) {
	var k TagKey
	rand.Read(k[:])
	return k, &Error{Code: "E3001", Reason: "no key store in this build"}
}
