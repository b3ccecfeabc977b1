package atip

// Effect names one thing a command may do. Idempotent and Reversible are
// dangerous when "no", all others when "yes".
type Effect uint8

// The effects of ATIP 0.6 section 3.6, then those of x-atip-effects.
const (
	Read Effect = iota // filesystem.read
	Write
	Delete
	Network
	Subprocess
	Destructive
	Billable
	Idempotent
	Reversible
	SecretRead
	Privileged
	Persistence
	RemoteMutation
	ExecOpaque
	NumEffects int = iota
)

var effectKeys = [NumEffects]string{
	"read", "write", "delete", "network", "subprocess", "destructive", "billable", "idempotent",
	"reversible", "secretRead", "privileged", "persistence", "remoteMutation", "execOpaque",
}

// String returns the key under which the effect appears in plans and policies.
func (e Effect) String() string { return effectKeys[e] }

// EffectByKey finds an effect by its key, with or without the prefixes that ATIP
// forms use ("effects.", "filesystem.", "cost.").
func EffectByKey(key string) (Effect, bool) {
	for _, prefix := range []string{"effects.", "filesystem.", "cost."} {
		if len(key) > len(prefix) && key[:len(prefix)] == prefix {
			key = key[len(prefix):]
		}
	}
	for i, k := range effectKeys {
		if k == key {
			return Effect(i), true
		}
	}
	return 0, false
}

// Dangerous is the value of e that can do harm.
func (e Effect) Dangerous() Value {
	if e == Idempotent || e == Reversible {
		return No
	}
	return Yes
}

// Rank is how far the source of a document is believed; each rank may claim all
// that lower ranks may. The zero value, Inferred, may claim danger only.
type Rank uint8

// Ranks in ascending order.
const (
	Inferred Rank = iota
	User
	Community
	Org
	Vendor
)

// String returns the name the protocol uses in trust.source.
func (r Rank) String() string {
	return [...]string{"inferred", "user", "community", "org", "vendor"}[r]
}

// MarshalText implements encoding.TextMarshaler.
func (r Rank) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Fact is one effect of one call with where it came from.
type Fact struct {
	Value   Value  `json:"value"`
	Source  string `json:"source,omitempty"`  // "builtin:gh", "user:FILE"
	Pointer string `json:"pointer,omitempty"` // JSON pointer into that document
	Clause  string `json:"clause,omitempty"`  // id of the x-atip-effects clause
	Rank    Rank   `json:"rank"`
}

// Effects holds a Fact for every Effect, indexed by it.
type Effects [NumEffects]Fact

// Set is a set of effects. In a policy's grants a member means that the dangerous
// value of the effect is covered: Reversible stands for "irreversible".
type Set uint32

// SetOf builds a Set.
func SetOf(effects ...Effect) Set {
	var s Set
	for _, e := range effects {
		s |= 1 << e
	}
	return s
}

// Has reports whether e is in the set.
func (s Set) Has(e Effect) bool { return s&(1<<e) != 0 }

// With returns s with e added.
func (s Set) With(e Effect) Set { return s | 1<<e }

// Without returns s with e removed.
func (s Set) Without(e Effect) Set { return s &^ (1 << e) }
