package plan

import (
	"os"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/procstat"
)

// PrimeSession is the label of the session, or else of the process that started us.
func (p *Plan) PrimeSession() string {
	for _, name := range append(SessionVariables(), "BUILDKITE_JOB_ID", "BUILD_ID") {
		if v := p.Machine.Getenv(name); v != "" {
			return v
		}
	}
	return "ppid-" + strconv.Itoa(os.Getppid()) + "-" + parentStarted()
}

// parentStarted tells processes apart that had the same number one after the other.
func parentStarted() string {
	parent, err := procstat.Of(os.Getppid())
	if err != nil {
		return "0"
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return parent.Fields[procstat.Start] + "-" + strings.TrimSpace(string(boot))
}

// Identity is the agent and the session that this process belongs to: labels, which give
// no authority.
func Identity(m caller.Machine) (agent, session string) {
	p := &Plan{Machine: m}
	return p.Agent(), p.PrimeSession()
}
