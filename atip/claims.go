package atip

import "cmp"

// SignatureClaim is a signature block of a document: who is said to have signed, never who
// did.
type SignatureClaim struct {
	Type     string // cosign, gpg, minisign; "" for no block
	Identity string
	Issuer   string
}

// TrustClaims is what a document says of signatures and builds. All of it is a claim: it can
// show that something is missing or contradicts itself, and proves nothing.
type TrustClaims struct {
	Document   SignatureClaim // about the document itself
	Tool       SignatureClaim // about the executable
	Conflict   bool           // two blocks about the document disagree
	Checksum   string         // of the executable, ALGORITHM:HEX
	Provenance bool           // a provenance of the executable is named

	// Where the evidence is said to lie: the first block of each kind that names a place.
	DocumentURL, ToolURL, ProvenanceURL string
}

// TrustClaims reads the places that ATIP 0.6 has for them: trust.shimIntegrity.signature,
// trust.signature, and trust.integrity.signature, which is about the document if that
// describes one binary, else about the tool.
func (d *Document) TrustClaims() TrustClaims {
	t := d.root().get("trust")
	var c TrustClaims
	if !t.is(KindObject) {
		return c
	}
	shim := d.root().get("binary").ok()
	integrity := t.get("integrity")
	places := []val{t.get("shimIntegrity").get("signature"), t.get("signature")}
	if shim {
		places = append(places, integrity.get("signature"))
	} else {
		c.Tool = signatureClaim(integrity.get("signature"))
		c.ToolURL = integrity.get("signature").get("bundle").str()
	}
	for _, v := range places {
		s := signatureClaim(v)
		if c.DocumentURL == "" {
			c.DocumentURL = v.get("bundle").str()
		}
		switch {
		case s.Type == "":
		case c.Document.Type == "":
			c.Document = s
		case s != c.Document:
			c.Conflict = true
		}
	}
	if sum := integrity.get("checksum").str(); sum != "" {
		c.Checksum = sum
	}
	c.Provenance = t.get("provenance").is(KindObject)
	c.ProvenanceURL = t.get("provenance").get("url").str()
	return c
}

func signatureClaim(v val) SignatureClaim {
	if !v.is(KindObject) {
		return SignatureClaim{}
	}
	s := SignatureClaim{Type: v.get("type").str(), Identity: v.get("identity").str(), Issuer: v.get("issuer").str()}
	s.Type = cmp.Or(s.Type, "unknown")
	return s
}
