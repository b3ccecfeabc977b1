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

// JoinDanger adds to a the danger that b states: b's unknown changes nothing,
// since b only raises the document that answered.
func JoinDanger(a, b Call) Call {
	for e := range a.Effects {
		if risk(Effect(e), b.Effects[e].Value) == 2 && risk(Effect(e), a.Effects[e].Value) < 2 {
			a.Effects[e] = b.Effects[e]
		}
	}
	return a
}
