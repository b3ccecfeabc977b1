package main

import "time"

// peer is one decision that can be asked.
type peer struct {
	name    string // for -only
	label   string // in the table
	version string
	source  source
	argv    func(found) []string // of the adapter, inside the jail
	stub    bool                 // it starts what it allows, and finds a stub in place of a shell
}

// all are the peers of the table. Versions are pinned: by package-lock.json of the folder,
// whose digests npm verifies, and by go.sum. The lock file of qwen leaves its optional
// packages out (sound, clipboard, images): some are in no registry, and npm ci wants all.
func all() []peer {
	node := func(folder, what string) func(found) []string {
		return func(f found) []string {
			return []string{f.node, jailed("adapters/" + folder + "/adapter.mjs"), what, jailed("installed")}
		}
	}
	codex := func(policy string) func(found) []string {
		return func(f found) []string {
			return []string{f.node, jailed("adapters/codex/adapter.mjs"), policy, jailed("installed")}
		}
	}
	gemini, fence := npmPackage{folder: "gemini"}, goModule{folder: "fence", module: "github.com/Use-Tusk/fence"}
	return []peer{
		{name: "codex-list", label: "codex 0.148, read-only list", version: "@openai/codex 0.148.0", source: npmPackage{folder: "codex148"}, argv: codex("untrusted"), stub: true},
		{name: "codex-danger", label: "codex 0.169, dangerous list", version: "@openai/codex 0.169.0", source: npmPackage{folder: "codex"}, argv: codex("on-request"), stub: true},
		{name: "gemini-list", label: "gemini, read-only list", version: "@google/gemini-cli-core 0.61.0", source: gemini, argv: node("gemini", "list")},
		{name: "gemini-tools", label: "gemini, list + default tools", version: "@google/gemini-cli-core 0.61.0", source: gemini, argv: node("gemini", "tools")},
		{name: "gemini-policy", label: "gemini, default policy", version: "@google/gemini-cli-core 0.61.0", source: gemini, argv: node("gemini", "policy")},
		{name: "qwen", label: "qwen-code, default permission", version: "@qwen-code/qwen-code 0.24.4", source: npmPackage{folder: "qwen"}, argv: node("qwen", "default")},
		{name: "fence", label: "fence, default", version: "github.com/Use-Tusk/fence v0.1.5", source: fence, argv: func(found) []string { return []string{jailed("installed/adapter")} }},
		{name: "fence-code", label: "fence, template code", version: "github.com/Use-Tusk/fence v0.1.5", source: goModule{folder: fence.folder, module: fence.module, template: "code"},
			argv: func(found) []string { return []string{jailed("installed/adapter"), jailed("installed/code.json")} }},
	}
}

// installTime bounds the installation of one peer.
const installTime = 15 * time.Minute
