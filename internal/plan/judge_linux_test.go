package plan

import "github.com/atip-dev/atip-exec/internal/gate"

// judge decides the starts of a plan as a run does. The package that does it imports this one, so that a
// test outside sets it.
var judge func(*Plan) *gate.Rules

// SetJudge is for tests of this package.
func SetJudge(j func(*Plan) *gate.Rules) { judge = j }
