package filter

import "bytes"

// maxCommand is how far left of an option its command may stand.
const maxCommand = 200

// readFlag looks at " -p" or " -u" at i: the value behind it is a password if the
// command on this line is one of the few that take it there.
func readFlag(v []byte, i int, flag string, eof bool) (candidate, outcome) {
	p := i + len(flag)
	if p >= len(v) {
		if eof {
			return candidate{}, no
		}
		return candidate{}, more
	}
	left := v[max(0, i-maxCommand):i]
	if nl := bytes.LastIndexByte(left, '\n'); nl >= 0 {
		left = left[nl+1:]
	}
	c := candidate{at: p, class: classStrong, rule: "password", noTag: true}
	spaced := v[p] == ' '
	switch {
	case flag == " -u" && spaced && command(left, "curl"):
		c.form = formUser
	case flag == " -p" && command(left, "sshpass"):
	case flag == " -p" && spaced && (command(left, "docker login") || command(left, "podman login") || command(left, "helm registry login")):
	case flag == " -p" && !spaced && (command(left, "mysql") || command(left, "mysqldump") || command(left, "mariadb")):
	default:
		return candidate{}, no
	}
	if spaced {
		c.at++
	}
	return c, found
}

// command reports whether the words stand in text as a command.
func command(text []byte, words string) bool {
	i := bytes.LastIndex(text, []byte(words))
	if i < 0 {
		return false
	}
	end := i + len(words)
	return (i == 0 || !isAlnum(text[i-1]) && text[i-1] != '-') && (end == len(text) || text[end] == ' ')
}

// userValue skips "user:".
func userValue(v []byte, p int, eof bool) (int, outcome) {
	q := p
	for q < len(v) && q-p < 128 && v[q] > ' ' && v[q] != ':' && v[q] != '"' && v[q] != '\'' {
		q++
	}
	switch {
	case q == len(v) && !eof:
		return p, more
	case q == len(v) || q == p || v[q] != ':':
		return p, no
	}
	return q + 1, found
}
