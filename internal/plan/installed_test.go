package plan

import (
	"os"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/policy"
)

// npx of what is installed in the project runs that, without a network; of anything else it
// fetches code and runs it.
func TestInstalledCommands(t *testing.T) {
	m := shellWorld(t)
	if err := os.MkdirAll("node_modules/.bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("node_modules/.bin/lint", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for text, local := range map[string]bool{
		"npx lint .":               true,
		"npm exec lint -- --fix":   true,
		"npm x lint":               true,
		"npm exec -- lint --fix":   true,
		"cd src && npx lint ..":    true,
		"npx other":                false,
		"npx lint@2 .":             false,
		"npx @scope/lint":          false,
		"npx ../lint":              false,
		"npx -p other lint":        false,
		"npx --package=other lint": false,
		"npx -c lint":              false,
		"npx --prefix /tmp lint":   false,
		"npm exec -p other lint":   false,
		"npx $X":                   false,
		"cd .. && npx lint":        false,
		"cd $X && npx lint":        false,
		"npx lint && npx other":    false,
	} {
		p := planOf(t, m, text)
		network := false
		for _, s := range p.Steps {
			network = network || s.Call.Effects[atip.Network].Value != atip.No
		}
		if allowed := p.Decision.Action == policy.Allow; allowed != local || network == local {
			t.Errorf("%s: %s, network %v", text, p.Decision.Action, network)
		}
	}
}
