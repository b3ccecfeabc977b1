package plan_test

import (
	"github.com/atip-dev/atip-exec/internal/gate"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/starts"
)

func init() {
	plan.SetJudge(func(p *plan.Plan) *gate.Rules {
		return starts.New(p, func(s string) string { return s }, func(string, any) {}).Rules()
	})
}
