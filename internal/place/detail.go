package place

import (
	"github.com/atip-dev/atip-exec/atip"
)

// detail tells what a build can make again and what the history can give back.
func (w World) detail(abs string) atip.Class {
	return atip.ClassWorkspace
}
