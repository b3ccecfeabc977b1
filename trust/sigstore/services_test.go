package sigstore_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"
)

// services are the deployment's Fulcio, Rekor, Rekor of version 2 and timestamp authority, each on
// a loopback server of its own, as far as a client sees them.
type services struct {
	fulcio, rekor, tiles, tsa *httptest.Server

	mu    sync.Mutex
	asked []string // path of each question, the last one last
	// certificateLogged says that certificates carry a promise of their log.
	certificateLogged atomic.Bool
}

// idToken is what an OpenID provider would say about an identity. Nothing but these servers
// believes it: its signature is none.
func idToken(t *testing.T, id identity) string {
	t.Helper()
	claims, err := json.Marshal(map[string]string{"iss": id.issuer, "sub": id.san, "source": id.source, "runner": id.runner, "config": id.config})
	if err != nil {
		t.Fatal(err)
	}
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"none"}`)) + "." + part(claims) + "." + part([]byte("synthetic"))
}

func (d *deployment) serve() *services {
	s := &services{}
	s.certificateLogged.Store(true)
	start := func(h func(w http.ResponseWriter, body []byte, r *http.Request)) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			s.asked = append(s.asked, r.URL.Path)
			s.mu.Unlock()
			body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			h(w, body, r)
		}))
		d.t.Cleanup(server.Close)
		return server
	}
	s.fulcio = start(func(w http.ResponseWriter, body []byte, r *http.Request) {
		d.fulcio(w, body, r, s.certificateLogged.Load())
	})
	s.rekor, s.tiles, s.tsa = start(d.rekor), start(d.rekorTiles), start(d.tsa)
	return s
}

// questions says how many came, and forgets them.
func (s *services) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.asked)
	s.asked = nil
	return n
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// fulcio certifies a key for the identity of the token, if its owner signs the token's subject.
func (d *deployment) fulcio(w http.ResponseWriter, body []byte, r *http.Request, logged bool) {
	var q struct {
		PublicKeyRequest struct {
			PublicKey         struct{ Content string }
			ProofOfPossession []byte
		}
	}
	var claims struct{ Iss, Sub, Source, Runner, Config string }
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 || json.Unmarshal(body, &q) != nil {
		http.Error(w, "no token, or no question", http.StatusUnauthorized)
		return
	}
	if raw, err := base64.RawURLEncoding.DecodeString(parts[1]); err != nil || json.Unmarshal(raw, &claims) != nil {
		http.Error(w, "not a token", http.StatusUnauthorized)
		return
	}
	block, _ := pem.Decode([]byte(q.PublicKeyRequest.PublicKey.Content))
	if block == nil {
		http.Error(w, "no key", http.StatusBadRequest)
		return
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	public, ok := key.(*ecdsa.PublicKey)
	sum := sha256.Sum256([]byte(claims.Sub))
	if err != nil || !ok || !ecdsa.VerifyASN1(public, sum[:], q.PublicKeyRequest.ProofOfPossession) {
		http.Error(w, "the key is not proven", http.StatusBadRequest)
		return
	}
	cert := d.issue(identity{san: claims.Sub, issuer: claims.Iss, source: claims.Source, runner: claims.Runner, config: claims.Config}, public, logged)
	text := func(c *x509.Certificate) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
	}
	reply(w, 200, object{"signedCertificateEmbeddedSct": object{"chain": object{"certificates": []string{text(cert), text(d.authority)}}}})
}

// rekor logs an entry as version 1 of the log writes it.
func (d *deployment) rekor(w http.ResponseWriter, body []byte, _ *http.Request) {
	var q struct {
		Kind string `json:"kind"`
		Spec struct {
			Data            object `json:"data"`
			Signature       object `json:"signature"`
			ProposedContent struct {
				Envelope  string   `json:"envelope"`
				Verifiers [][]byte `json:"verifiers"`
			} `json:"proposedContent"`
		} `json:"spec"`
	}
	if json.Unmarshal(body, &q) != nil {
		http.Error(w, "no question", http.StatusBadRequest)
		return
	}
	spec := object{"data": q.Spec.Data, "signature": q.Spec.Signature}
	if q.Kind == "dsse" {
		var e struct {
			Payload    []byte
			Signatures []struct{ Sig string }
		}
		if json.Unmarshal([]byte(q.Spec.ProposedContent.Envelope), &e) != nil || len(e.Signatures) != 1 || len(q.Spec.ProposedContent.Verifiers) != 1 {
			http.Error(w, "no envelope", http.StatusBadRequest)
			return
		}
		hash := func(raw []byte) object {
			sum := sha256.Sum256(raw)
			return object{"algorithm": "sha256", "value": hex.EncodeToString(sum[:])}
		}
		spec = object{"envelopeHash": hash([]byte(q.Spec.ProposedContent.Envelope)), "payloadHash": hash(e.Payload),
			"signatures": []any{object{"signature": e.Signatures[0].Sig, "verifier": b64(q.Spec.ProposedContent.Verifiers[0])}}}
	}
	e := d.entry(q.Kind, object{"apiVersion": "0.0.1", "kind": q.Kind, "spec": spec}, time.Now(), 42)
	proof := e["inclusionProof"].(object)
	rootHash, _ := base64.StdEncoding.DecodeString(proof["rootHash"].(string))
	const uuid = "24296fb24b8ad77a"
	w.Header().Set("ETag", uuid)
	w.Header().Set("Location", "/api/v1/log/entries/"+uuid)
	reply(w, 201, object{uuid: object{"body": e["canonicalizedBody"], "integratedTime": json.Number(e["integratedTime"].(string)), "logID": d.logID(), "logIndex": 42,
		"verification": object{"signedEntryTimestamp": e["inclusionPromise"].(object)["signedEntryTimestamp"],
			"inclusionProof": object{"checkpoint": proof["checkpoint"].(object)["envelope"], "hashes": []string{}, "rootHash": hex.EncodeToString(rootHash),
				"logIndex": json.Number(proof["logIndex"].(string)), "treeSize": json.Number(proof["treeSize"].(string))}}}})
}

// rekorTiles logs an entry as version 2 of the log does: without a time of its own.
func (d *deployment) rekorTiles(w http.ResponseWriter, body []byte, _ *http.Request) {
	var q struct {
		Request struct {
			Signature object `json:"signature"`
			Digest    string `json:"digest"`
		} `json:"hashedRekordRequestV002"`
	}
	if json.Unmarshal(body, &q) != nil {
		http.Error(w, "no question", http.StatusBadRequest)
		return
	}
	reply(w, 201, d.tile(q.Request.Signature, q.Request.Digest))
}

// tile is an entry of a log of version 2, which holds nothing else.
func (d *deployment) tile(signature object, digest string) object {
	d.t.Helper()
	raw, err := json.Marshal(object{"apiVersion": "0.0.2", "kind": "hashedrekord",
		"spec": object{"hashedRekordV002": object{"data": object{"algorithm": "SHA2_256", "digest": digest}, "signature": signature}}})
	if err != nil {
		d.t.Fatal(err)
	}
	id := keyDigest(d.tiles)
	return object{"logIndex": "0", "logId": object{"keyId": b64(id[:])}, "kindVersion": object{"kind": "hashedrekord", "version": "0.0.2"}, "canonicalizedBody": b64(raw),
		"inclusionProof": included(d.t, d.tiles, tilesHost, tilesHost, raw)}
}

func (d *deployment) tsa(w http.ResponseWriter, body []byte, _ *http.Request) {
	q, err := timestamp.ParseRequest(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/timestamp-reply")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(d.stamp(q.HashedMessage))
}

// repository is a TUF repository with one target, trusted_root.json.
type repository struct {
	t       *testing.T
	server  *httptest.Server
	keys    map[string]ed25519.PrivateKey
	version int64
	expires time.Time
	root    []byte // the first root.json, by which it is known
	files   map[string][]byte
	mu      sync.Mutex
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{t: t, keys: map[string]ed25519.PrivateKey{}, expires: time.Now().AddDate(0, 0, 1).UTC(), files: map[string][]byte{}}
	for _, role := range metadata.TOP_LEVEL_ROLE_NAMES {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		r.keys[role] = private
	}
	root := metadata.Root(time.Now().AddDate(1, 0, 0).UTC())
	for _, role := range metadata.TOP_LEVEL_ROLE_NAMES {
		key, err := metadata.KeyFromPublicKey(r.keys[role].Public())
		if err == nil {
			err = root.Signed.AddKey(key, role)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r.root = signed(r, metadata.ROOT, root)
	r.files["/1.root.json"] = r.root
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		raw, ok := r.files[q.URL.Path]
		r.mu.Unlock()
		if !ok {
			http.NotFound(w, q)
			return
		}
		_, _ = w.Write(raw)
	}))
	t.Cleanup(r.server.Close)
	return r
}

// signed is the text of a role, with the signature of its key.
func signed[T metadata.Roles](r *repository, role string, m *metadata.Metadata[T]) []byte {
	r.t.Helper()
	signer, err := signature.LoadSigner(r.keys[role], crypto.Hash(0))
	if err == nil {
		_, err = m.Sign(signer)
	}
	var raw []byte
	if err == nil {
		raw, err = m.ToBytes(false)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return raw
}

// publish makes a new version of the repository.
func (r *repository) publish(trustedRoot []byte) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version++
	targets, snapshot, stamp := metadata.Targets(r.expires), metadata.Snapshot(r.expires), metadata.Timestamp(r.expires)
	sum := sha256.Sum256(trustedRoot)
	targets.Signed.Version, snapshot.Signed.Version, stamp.Signed.Version = r.version, r.version, r.version
	targets.Signed.Targets["trusted_root.json"] = &metadata.TargetFiles{Length: int64(len(trustedRoot)), Hashes: metadata.Hashes{"sha256": sum[:]}}
	snapshot.Signed.Meta["targets.json"] = metadata.MetaFile(r.version)
	stamp.Signed.Meta["snapshot.json"] = metadata.MetaFile(r.version)
	r.files[fmt.Sprintf("/%d.targets.json", r.version)] = signed(r, metadata.TARGETS, targets)
	r.files[fmt.Sprintf("/%d.snapshot.json", r.version)] = signed(r, metadata.SNAPSHOT, snapshot)
	r.files["/timestamp.json"] = signed(r, metadata.TIMESTAMP, stamp)
	r.files[fmt.Sprintf("/targets/%x.trusted_root.json", sum)] = trustedRoot
}

// set changes one file, nil takes it away.
func (r *repository) set(path string, raw []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if raw == nil {
		delete(r.files, path)
		return
	}
	r.files[path] = raw
}

func (r *repository) get(path string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.files[path]
}
