package sandbox

// Change is a protected name that differs after a run.
type Change struct {
	Path   string `json:"path"`
	What   string `json:"what"`   // new, changed, removed
	Action string `json:"action"` // quarantined, restored, reported
	Code   string `json:"code"`   // E4111 put back, E4112 could not be put back
	Kept   string `json:"kept,omitempty"`
	Run    string `json:"run,omitempty"` // under which it is kept
	Err    string `json:"error,omitempty"`
}

// Settlement is what the comparison of the protected names found and did.
type Settlement struct {
	Checked int
	Changes []Change // also of earlier runs whose wrapper was killed
	// Repositories are git directories that the run made elsewhere in the workspace. They
	// are told and left.
	Repositories []string
	Unpinned     int  // names that are there and could change during the run, for want of mounts
	Lost         bool // git's own pointers could not all be followed
	Truncated    bool // not all of the workspace was looked at for them
}

// maxListedChanges bounds what a receipt lists.
const maxListedChanges = 256

// Receipt is the settlement as receipts carry it.
func (s Settlement) Receipt() ProtectedReceipt {
	r := ProtectedReceipt{Checked: s.Checked, Changed: []string{}, Repositories: s.Repositories, Unpinned: s.Unpinned, Truncated: s.Truncated}
	for i, c := range s.Changes {
		if i == maxListedChanges {
			r.Truncated = true
			break
		}
		r.Changed = append(r.Changed, c.Path)
	}
	return r
}
