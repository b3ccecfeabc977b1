package atip

// Primes reports whether the tool says that it has the Prime Directive: a command prime of
// its own, or the feature. A document that only guesses says nothing.
func (d *Document) Primes() bool {
	if d.Inferred() {
		return false
	}
	root := d.rootNode()
	if _, found := d.primeNode(root); found {
		return true
	}
	has := false
	d.root().get("atip").get("features").items(func(_ int, v val) { has = has || v.str() == "prime" })
	return has
}

func (d *Document) primeNode(root *node) (*node, bool) {
	if root.rec != nil {
		n, abbreviated := root.lookup("prime")
		return n, n != nil && !abbreviated
	}
	if v := root.kids.get("prime"); v.ok() {
		return root.child("prime", v), true
	}
	return nil, false
}

// PrimesMetadata reports whether prime takes --metadata.
func (d *Document) PrimesMetadata() bool {
	n, found := d.primeNode(d.rootNode())
	return found && n.own("--metadata") != nil
}
