package atip

// JoinEffects is the worst case of two statements: danger over unknown over
// harmless, effect by effect.
func JoinEffects(a, b Effects) Effects {
	for e := range a {
		if risk(Effect(e), b[e].Value) > risk(Effect(e), a[e].Value) {
			a[e] = b[e]
		}
	}
	return a
}

// risk orders the values of e: harmless 0, unknown 1, dangerous 2.
func risk(e Effect, v Value) int {
	switch v {
	case Unknown:
		return 1
	case e.Dangerous():
		return 2
	}
	return 0
}

// JoinDanger adds to a the danger that b, another document on the same words, states:
// its unknown changes nothing, since b only raises the document that answered. What b
// says of resources, nested commands and code files joins in; its claims on secrets
// and paths do not.
func JoinDanger(a, b Call) Call {
	for e := range a.Effects {
		if risk(Effect(e), b.Effects[e].Value) == 2 && risk(Effect(e), a.Effects[e].Value) < 2 {
			a.Effects[e] = b.Effects[e]
		}
	}
	a.Resources = append([]Resource{}, a.Resources...)
	for _, r := range b.Resources {
		a.addResource(r)
	}
	a.Nested = append(append([]Nested{}, a.Nested...), b.Nested...)
	a.CodeFiles = append(append([]CodeFile(nil), a.CodeFiles...), b.CodeFiles...)
	a.AltPaths = append([][]string(nil), a.AltPaths...)
	if b.Exactness != Unresolved {
		addPath(&a, b.Path)
	}
	if stdinOrder(b.Interactive.Stdin) > stdinOrder(a.Interactive.Stdin) {
		a.Interactive.Stdin = b.Interactive.Stdin
	}
	if b.Interactive.TTY == Yes {
		a.Interactive.TTY = Yes
	}
	if b.Interactive.Prompts == Yes {
		a.Interactive.Prompts = Yes
	}
	return a
}
