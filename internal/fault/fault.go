// Package fault is the one table of error codes: for each code its exit status,
// category, what the caller can do, and how to say it.
package fault

// Coded is implemented by the errors of every package that names a code of the
// table. Packages return their own error types; only this package maps them.
type Coded interface {
	error
	// FaultCode is the stable code, such as "E2001".
	FaultCode() string
	// FaultDetails is the object printed under "details"; nil for none.
	FaultDetails() map[string]any
}
