package policy

// globMatch matches s against a pattern in which * stands for any run of
// characters and ? for one. It backtracks to the last star only, so its cost is
// at most len(p)*len(s).
func globMatch(p, s string) bool {
	pi, si, star, mark := 0, 0, -1, 0
	for si < len(s) {
		switch {
		case pi < len(p) && p[pi] == '*':
			pi++
			star, mark = pi, si
		case pi < len(p) && (p[pi] == s[si] || p[pi] == '?'):
			pi++
			si++
		case star >= 0:
			mark++
			pi, si = star, mark
		default:
			return false
		}
	}
	for pi < len(p) && p[pi] == '*' {
		pi++
	}
	return pi == len(p)
}

// pathGlob matches component by component: * and ? stay within one, ** stands for
// any number of components, none included.
func pathGlob(p, s string) bool {
	pi, si, star, mark := 0, 0, -1, 0
	for si <= len(s) {
		if pi <= len(p) {
			pc, pn := component(p, pi)
			if pc == "**" {
				pi = pn
				star, mark = pi, si
				continue
			}
			if sc, sn := component(s, si); globMatch(pc, sc) {
				pi, si = pn, sn
				continue
			}
		}
		if star < 0 {
			return false
		}
		_, mark = component(s, mark)
		pi, si = star, mark
	}
	for pi <= len(p) {
		c, next := component(p, pi)
		if c != "**" {
			return false
		}
		pi = next
	}
	return true
}

// component returns the path component at i and where the next one starts, which
// is len(s)+1 after the last.
func component(s string, i int) (string, int) {
	for j := i; j < len(s); j++ {
		if s[j] == '/' {
			return s[i:j], j + 1
		}
	}
	return s[i:], len(s) + 1
}

func anyGlob(patterns []string, s string) bool {
	for _, p := range patterns {
		if globMatch(p, s) {
			return true
		}
	}
	return false
}

func baseName(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

func contains[T comparable](list []T, x T) bool {
	for _, y := range list {
		if x == y {
			return true
		}
	}
	return false
}
