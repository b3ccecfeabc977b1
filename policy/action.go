package policy

// Action is the outcome for a step or a whole request. The zero value denies; of
// two actions the smaller is the stricter.
type Action uint8

// The actions, strictest first.
const (
	Deny Action = iota
	Confirm
	Allow
)

// String returns the name used in policy documents.
func (a Action) String() string {
	switch a {
	case Allow:
		return "allow"
	case Confirm:
		return "confirm"
	}
	return "deny"
}

// MarshalText implements encoding.TextMarshaler.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// ActionByName is the inverse of String.
func ActionByName(name string) (Action, bool) {
	switch name {
	case "deny":
		return Deny, true
	case "confirm":
		return Confirm, true
	case "allow":
		return Allow, true
	}
	return Deny, false
}

// Layer says where a document comes from, and with it what it may loosen. A
// larger layer is further below: it can be bounded by every smaller one.
type Layer uint8

// The layers, from the one above all to the narrowest.
const (
	LayerBuiltin   Layer = iota
	LayerManaged         // /etc/agent-tools, owned by root
	LayerOrg             // fetched from an organisation's registry: tightens only
	LayerUser            // the user's own policy.json
	LayerProject         // found in the workspace: tightens only until trusted
	LayerFlag            // --policy, --profile, environment: agents type flags, so never loosens
	LayerDelegated       // a lead agent's restrictions: never loosens
)

// NumLayers is the number of layers.
const NumLayers = int(LayerDelegated) + 1

// String returns the name shown before a rule's id.
func (l Layer) String() string {
	return [...]string{"builtin", "managed", "org", "user", "project", "flag", "delegated"}[l]
}

// MarshalText implements encoding.TextMarshaler.
func (l Layer) MarshalText() ([]byte, error) { return []byte(l.String()), nil }
