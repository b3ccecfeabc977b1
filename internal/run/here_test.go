package run

// here is this process on a machine whose administrator lets HOME and the XDG variables name
// any directory: each test has a home of its own.
func here() Machine {
	m := Here()
	m.Homes = []string{"/"}
	return m
}
