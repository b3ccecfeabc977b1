package policy

// A switch turns one allow rule of the built-in policy on or off.

// isSwitch reports whether name is a switch.
func isSwitch(name string) bool {
	for i := range switchTable {
		if switchTable[i].name == name {
			return true
		}
	}
	return false
}

type switchSet uint32

type switchRow struct {
	name string
	on   [4]bool // in the profiles workspace, read-only, ci, ops
}

// switchTable lists the switches and the shipped profiles. Inline code of an
// interpreter runs in the default profile because the kernel holds it to the
// workspace without network; where nobody watches (ci) or nothing may be written
// (read-only) it asks.
var switchTable = [...]switchRow{
	{"workspace_write", [4]bool{true, false, true, true}},
	{"git_local", [4]bool{true, false, true, true}},
	{"regenerable_delete", [4]bool{true, false, true, true}},
	{"undoable", [4]bool{true, false, true, false}},
	{"project_code", [4]bool{true, false, true, false}},
	{"network_read", [4]bool{true, true, true, true}},
	{"inline_code", [4]bool{true, false, false, false}},
	{"declared_dependencies", [4]bool{true, false, true, true}},
	{"tracked_delete", [4]bool{}},
	{"loopback", [4]bool{3: true}},
	{"url_fetch", [4]bool{3: true}},
	{"package_install", [4]bool{2: true}},
	{"unknown_tools", [4]bool{}},
	{"remote_change", [4]bool{}},
	{"defer", [4]bool{}}, // no rule: what planning may leave to the gate
}

var shippedProfiles = [...]string{"workspace", "read-only", "ci", "ops"}

func shippedProfile(name string) bool {
	return contains(shippedProfiles[:], name)
}

func switchBit(name string) switchSet {
	for i := range switchTable {
		if switchTable[i].name == name {
			return 1 << i
		}
	}
	return 0
}

func profileSwitches(name string) switchSet {
	var set switchSet
	for p, n := range shippedProfiles {
		if n != name {
			continue
		}
		for i := range switchTable {
			if switchTable[i].on[p] {
				set |= 1 << i
			}
		}
	}
	return set
}

// has reports whether all of the named switches are on.
func (s switchSet) has(names []string) bool {
	for _, n := range names {
		if s&switchBit(n) == 0 {
			return false
		}
	}
	return true
}

func (s switchSet) names() []string {
	var out []string
	for i := range switchTable {
		if s&(1<<i) != 0 {
			out = append(out, switchTable[i].name)
		}
	}
	return out
}
