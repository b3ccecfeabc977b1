package run

import "github.com/atip-dev/atip-exec/policy"

// shell looks into a shell string that a step runs. Until the reader of shell
// strings vets every construct, the text is inline code: it runs only where the
// kernel confines it as it confines any script of the workspace.
func (c *collector) shell(s *step, text string, via []string) error {
	s.RunsCode = max(s.RunsCode, policy.CodeInline)
	return nil
}
