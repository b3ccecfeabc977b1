package filter

// layer orders what may name a region that several findings share.
type layer uint8

const (
	layerNone layer = iota
	layerContext
	layerPrefix
	layerArmour
	layerKnown
)

func (l layer) String() string {
	return [...]string{"none", "context", "prefix", "armour", "known"}[l]
}

type outcome uint8

const (
	no outcome = iota
	// more: the bytes so far do not decide. What is decided once must stay so
	// whatever follows; this is what makes the output independent of how the
	// stream is cut.
	more
	found
	// swallow: a secret so long that its rest is dropped as it comes.
	swallow
	armoured
)

// verdict is the judgement on one candidate.
type verdict struct {
	outcome    outcome
	layer      layer
	start, end int // visible bytes, for found and swallow
	rule       string
	known      string  // the known value
	noTag      bool    // could be guessed against its tag
	learn      bool    // certain enough to be looked for from now on, if a context value is also unlike any word
	until      byteSet // swallow: the rest runs as long as its bytes are in here
	loose      bool    // more: at a pause these bytes may go out
}

// unspaced are the bytes that go with a secret which was too long to wait for.
func unspaced() byteSet {
	all := byteSet{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	return all.without("\x00\t\n\r \"'`<>")
}

const (
	// maxHeld bounds the raw bytes that wait for one verdict, together with those of a run before
	// it (maxRunHeld) and a sequence behind it (maxSeq): 8 KiB in all.
	maxHeld    = 6400
	maxRunHeld = 512
	// maxRun is the length from which a token is swallowed.
	maxRun = 1024
	// maxValue is how long a context value may stay undecided.
	maxValue = 4096
	// loosePrefix is how many bytes after a public prefix a pause may show.
	loosePrefix = 6
)
