package atip

import "github.com/atip-dev/atip-exec/internal/errcode"

// StripComments replaces // and /* */ comments outside strings by spaces, so that
// line and column of everything else stay as they are. It returns a new slice.
func StripComments(raw []byte) ([]byte, error) {
	out := make([]byte, len(raw))
	copy(out, raw)
	for i := 0; i < len(out); {
		switch {
		case out[i] == '"':
			i++
			for i < len(out) && out[i] != '"' {
				if out[i] == '\\' {
					i++
				}
				i++
			}
			i++
		case out[i] == '/' && i+1 < len(out) && out[i+1] == '/':
			for i < len(out) && out[i] != '\n' {
				out[i] = ' '
				i++
			}
		case out[i] == '/' && i+1 < len(out) && out[i+1] == '*':
			start := i
			out[i], out[i+1] = ' ', ' '
			i += 2
			for i < len(out) && !(out[i] == '*' && i+1 < len(out) && out[i+1] == '/') {
				if out[i] != '\n' && out[i] != '\r' {
					out[i] = ' '
				}
				i++
			}
			if i >= len(out) {
				line, col := position(string(raw), start)
				return nil, &DocError{Code: errcode.MetadataSyntax, Line: line, Col: col, Msg: "comment is not closed"}
			}
			out[i], out[i+1] = ' ', ' '
			i += 2
		default:
			i++
		}
	}
	return out, nil
}
