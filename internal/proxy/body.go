package proxy

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
)

var errBody = errors.New("the body of the request is malformed")

// copyBody passes on exactly the body that the head announced. Chunks are written anew,
// without extensions and trailers.
func copyBody(dst io.Writer, src *bufio.Reader, r *request) (int64, error) {
	if !r.chunked {
		return io.CopyN(dst, src, r.length)
	}
	var total int64
	for {
		line, err := bodyLine(src)
		if err != nil {
			return total, err
		}
		digits, _, _ := strings.Cut(line, ";")
		digits = strings.TrimRight(digits, " \t")
		n, err := strconv.ParseInt(digits, 16, 63)
		if err != nil || len(digits) > 15 || digits[0] == '+' || digits[0] == '-' {
			return total, errBody
		}
		if n == 0 {
			break
		}
		if _, err := io.WriteString(dst, strconv.FormatInt(n, 16)+"\r\n"); err != nil {
			return total, err
		}
		sent, err := io.CopyN(dst, src, n)
		total += sent
		if err != nil {
			return total, err
		}
		if line, err := bodyLine(src); err != nil || line != "" {
			return total, errors.Join(errBody, err)
		}
		if _, err := io.WriteString(dst, "\r\n"); err != nil {
			return total, err
		}
	}
	for seen := 0; ; { // trailers
		line, err := bodyLine(src)
		if err != nil {
			return total, err
		}
		if line == "" {
			_, err := io.WriteString(dst, "0\r\n\r\n")
			return total, err
		}
		if seen += len(line); seen > maxHead {
			return total, errBody
		}
	}
}

// bodyLine reads up to CR LF. The reader's buffer bounds it.
func bodyLine(src *bufio.Reader) (string, error) {
	line, err := src.ReadSlice('\n')
	if err != nil {
		return "", errors.Join(errBody, err)
	}
	text, ok := strings.CutSuffix(string(line), "\r\n")
	if !ok || strings.IndexByte(text, '\r') >= 0 {
		return "", errBody
	}
	return text, nil
}
