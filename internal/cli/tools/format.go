package tools

import (
	"strconv"

	"github.com/atip-dev/atip-exec/shims"
)

func itoa(n int) string { return strconv.Itoa(n) }

func listLine(e shims.Entry) string {
	line := e.Name + "  " + e.Channel + ", rank " + e.Rank.String() + "  " + e.Description
	if e.Problem != "" {
		line += "  UNUSABLE: " + e.Problem
	}
	return line + "\n"
}
