//go:build !linux

package sandbox

// Protection is nothing where no run is confined.
type Protection struct{}

// Change is a protected name that differs after a run.
type Change struct {
	Path   string `json:"path"`
	What   string `json:"what"`
	Action string `json:"action"`
	Code   string `json:"code"`
	Kept   string `json:"kept,omitempty"`
	Err    string `json:"error,omitempty"`
}

// Settlement is what Settle found and did.
type Settlement struct {
	Checked int
	Changes []Change
}

// Receipt is the settlement as receipts carry it.
func (s Settlement) Receipt() ProtectedReceipt { return ProtectedReceipt{Changed: []string{}} }

// Guard protects nothing: a run that is not confined can change everything.
func Guard(Profile, string, string) (*Protection, []Change, error) { return nil, nil, nil }

// Settle does nothing.
func (*Protection) Settle() Settlement { return Settlement{} }
