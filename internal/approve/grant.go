package approve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// GrantNamespace is the SSHSIG namespace under which grants are signed: a signature
// made for anything else, such as a git commit, is none here.
const GrantNamespace = "atip-exec-grant@v1"

// The life of a grant, whatever it says itself.
const (
	onceLife  = 10 * time.Minute
	timesLife = time.Hour
	maxTimes  = 20
	clockSkew = 30 * time.Second
)

// Grant is a person's permission for one plan.
type Grant struct {
	V        int       `json:"v"`
	ID       string    `json:"id"`
	Kind     string    `json:"kind"`             // once, times, session
	Digest   string    `json:"digest,omitempty"` // of the request's bound object
	Scope    *Scope    `json:"scope,omitempty"`  // of kind session, instead of a digest
	Times    int       `json:"times,omitempty"`
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires"`
	Approver string    `json:"approver"`
	Sig      string    `json:"sig,omitempty"` // SSHSIG over Signed
}

// Approver is a key that may sign grants, and how much its word is worth.
type Approver struct {
	ID    string
	Key   string // an authorized_keys line
	Level int
}

// Rules is what a plan demands of a grant.
type Rules struct {
	Approvers  []Approver
	MinLevel   int
	OnceOnly   bool   // destructive, irreversible, billable, secret, privileged or persistent
	Idempotent bool   // every step; only then may a grant count more than once
	Scope      *Scope // what a grant for a session would have to cover; nil if none can

	MaxAge time.Duration // of a grant of any kind; 0 leaves each kind its own
}

// Limit ends a grant that is not signed yet when it is this old, if it would live longer.
func (g *Grant) Limit(age time.Duration) {
	if end := g.Created.Add(age); age > 0 && end.Before(g.Expires) {
		g.Expires = end
	}
}

// Signed is the text that is signed: the grant's canonical form without its
// signature.
func (g *Grant) Signed() ([]byte, error) {
	m := map[string]any{
		"v": g.V, "id": g.ID, "kind": g.Kind, "digest": g.Digest, "times": g.Times, "approver": g.Approver,
		"created": g.Created.UTC().Format(time.RFC3339), "expires": g.Expires.UTC().Format(time.RFC3339),
	}
	if g.Scope != nil {
		m["scope"] = g.Scope.Canonical()
	}
	return appendCanonical(nil, m, 0)
}

// Find looks in dir for a grant of the plan with this digest. Anything wrong with a
// grant makes it as if absent; the warnings say what. It is not spent yet: see Spend.
func Find(dir, digest string, rules Rules) (g *Grant, warnings []string, err error) {
	return find(dir, digest, rules, time.Now())
}

func find(dir, digest string, rules Rules, now time.Time) (*Grant, []string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err == nil {
		err = private(dir)
	}
	if err != nil {
		return nil, nil, &Error{"list grants in", dir, err}
	}
	var warnings []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		g, err := readGrant(filepath.Join(dir, e.Name()))
		if err == nil && g.Kind != "session" && g.Digest != digest || err == nil && g.Kind == "session" && !g.Scope.Covers(rules.Scope) {
			continue // for another plan
		}
		if err == nil && g.ID != name {
			err = errors.New("its name is not its id")
		}
		if err == nil {
			err = g.check(rules, now)
		}
		if err == nil && g.left(dir) == 0 {
			err = errors.New("it is spent")
		}
		if err != nil {
			warnings = append(warnings, "grant "+name+" does not count: "+err.Error())
			continue
		}
		return g, warnings, nil
	}
	return nil, warnings, nil
}

func readGrant(file string) (*Grant, error) {
	f, err := openOurs(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, 16<<10))
	if err != nil {
		return nil, err
	}
	return decodeGrant(raw)
}

func decodeGrant(raw []byte) (*Grant, error) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	var g Grant
	if err := d.Decode(&g); err != nil {
		return nil, err
	}
	return &g, nil
}

// check verifies everything about a grant but whether it is spent.
func (g *Grant) check(rules Rules, now time.Time) error {
	life := onceLife
	switch {
	case g.V != 1:
		return fmt.Errorf("version %d", g.V)
	case !validGrantID(g.ID):
		return errors.New("its id is malformed")
	case g.Kind == "times":
		life = timesLife
		if rules.OnceOnly || !rules.Idempotent {
			return errors.New("this plan can be granted once at a time only")
		}
		if g.Times < 1 || g.Times > maxTimes {
			return fmt.Errorf("%d times", g.Times)
		}
	case g.Kind == "session":
		life = sessionLife
		if rules.OnceOnly || g.Digest != "" || !g.Scope.Covers(rules.Scope) {
			return errors.New("this plan cannot be granted for a session")
		}
	case g.Kind != "once":
		return fmt.Errorf("unknown kind %q", g.Kind)
	}
	if g.Kind != "session" && (g.Scope != nil || g.Digest == "") {
		return errors.New("it is for a session and for one plan")
	}
	if rules.MaxAge > 0 {
		life = min(life, rules.MaxAge)
	}
	if now.Before(g.Created.Add(-clockSkew)) || !now.Before(g.Expires) || !now.Before(g.Created.Add(life)) {
		return errors.New("it is not valid now")
	}
	sig, err := parseSignature(g.Sig)
	if err != nil {
		return err
	}
	text, err := g.Signed()
	if err != nil {
		return err
	}
	for _, a := range rules.Approvers {
		if a.ID != g.Approver {
			continue
		}
		key, err := keyBlob(a.Key)
		if err != nil {
			return fmt.Errorf("approver %s: %w", a.ID, err)
		}
		if err := sig.verify(key, GrantNamespace, text); err != nil {
			return err
		}
		level := a.Level
		if level >= 3 && !sig.hardware() {
			level = 2 // a key in a file is never worth a touch
		}
		if level < rules.MinLevel {
			return fmt.Errorf("level %d is below the %d that this plan needs", level, rules.MinLevel)
		}
		return nil
	}
	return fmt.Errorf("%q is no approver", g.Approver)
}

func validGrantID(id string) bool {
	if len(id) < 8 || len(id) > 64 {
		return false
	}
	for i := 0; i < len(id); i++ {
		if c := id[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9') {
			return false
		}
	}
	return true
}

// left is how often the grant may still be used.
func (g *Grant) left(dir string) int {
	if g.Kind == "session" {
		return 1 // as often as it takes, while it lives
	}
	left := 0
	for i := range g.uses() {
		if _, err := os.Lstat(g.mark(dir, i)); errors.Is(err, os.ErrNotExist) {
			left++
		}
	}
	return left
}

func (g *Grant) uses() int {
	if g.Kind == "times" {
		return g.Times
	}
	return 1
}

func (g *Grant) mark(dir string, use int) string {
	return filepath.Join(dir, "used", fmt.Sprintf("%s.%d", g.ID, use))
}

// ErrSpent says that another run used the grant first.
var ErrSpent = errors.New("the grant is spent")

// Spend uses the grant once, just before the start; it stays spent if the start
// fails. Of two runs that try at once, one gets it: the mark is made exclusively.
func (g *Grant) Spend(dir string) error {
	if g.Kind == "session" {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(dir, "used"), 0o700); err != nil {
		return &Error{"spend grant in", dir, err}
	}
	if err := private(filepath.Join(dir, "used")); err != nil {
		return &Error{"spend grant in", dir, err}
	}
	for i := range g.uses() {
		f, err := os.OpenFile(g.mark(dir, i), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err == nil {
			// The mark must outlive a crash, or the grant would count again.
			if err = f.Sync(); err == nil {
				err = syncDir(filepath.Join(dir, "used"))
			}
			f.Close()
		}
		if err != nil {
			return &Error{"spend grant in", dir, err}
		}
		return nil
	}
	return ErrSpent
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
