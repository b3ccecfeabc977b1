package wiring

// The outer limit of a hook, in seconds, lies below the limit that each row sets for its host:
// a host that gives up waiting runs the command.
const (
	Limit     = 20
	hostLimit = "30"
)

// Texts that several rows share.
const (
	diesOpen   = "a hook file that is gone or killed lets the command run; if our program is gone, hangs or prints garbage, the hook file blocks"
	diesKilled = "a hook file that is killed lets the command run, one that is gone blocks; if our program is gone, hangs or prints garbage, the hook file blocks"
	diesClosed = "the command is blocked"
	restart    = "restart running sessions"
	ownTools   = "its own file and web tools"
	byPath     = "a shell file that is gone makes it take the next bash of PATH"
	unverified = "unverified: after its documentation"
)

// answers of the hosts that took over the form of Claude Code.
const (
	claudePass    = `{}`
	claudeRewrite = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":$INPUT}}`
	claudeDeny    = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":$REASON}}`
)

// Hosts is the table. It is a function so that a command pays nothing for it.
func Hosts() []Host {
	return []Host{
		{Name: "claude", Title: "Claude Code", Programs: []string{"claude"}, Dirs: []string{".claude"},
			Files: map[Scope]string{User: ".claude/settings.json", Project: ".claude/settings.local.json"},
			Ask: &Ask{
				Edit:  Edit{Path: []string{"hooks", "PreToolUse"}, Append: true, Value: `{"matcher":"Bash","hooks":[{"type":"command","command":$HOOK,"timeout":` + hostLimit + `}]}`},
				Known: []string{"session_id", "transcript_path", "cwd", "prompt_id", "permission_mode", "agent_id", "agent_type", "effort", "hook_event_name", "tool_name", "tool_input", "tool_use_id"},
				Kind:  [2]string{"hook_event_name", "PreToolUse"}, ToolKey: "tool_name", Tools: []string{"Bash"}, Input: "tool_input", Command: "command", Cwd: "cwd",
				Inputs: []string{"timeout", "description", "run_in_background", "dangerouslyDisableSandbox"},
				Pass:   claudePass, Rewrite: claudeRewrite, Deny: claudeDeny, Dies: diesOpen},
			Shell: &ShellRow{Edit: &Edit{Path: []string{"env", "CLAUDE_CODE_SHELL"}, Value: "$SHELL"}, Variable: "CLAUDE_CODE_SHELL",
				Dies: "a shell file that is gone makes it take another shell; the hook then denies each command"},
			Gaps: []string{ownTools, "in mode hook: commands typed with !, MCP servers, and what its shell keeps between commands (directory, functions, aliases)"}, Steps: []string{restart}, Seen: "2.1.330"},

		{Name: "codex", Title: "Codex", Programs: []string{"codex"}, Dirs: []string{".codex"},
			Files: map[Scope]string{User: ".codex/hooks.json", Project: ".codex/hooks.json"},
			Ask: &Ask{
				Edit:  Edit{Path: []string{"hooks", "PreToolUse"}, Append: true, Value: `{"matcher":"^Bash$","hooks":[{"type":"command","command":$HOOK,"timeout":` + hostLimit + `}]}`},
				Known: []string{"session_id", "transcript_path", "cwd", "permission_mode", "agent_id", "agent_type", "hook_event_name", "model", "tool_name", "tool_input", "tool_use_id", "turn_id"},
				Kind:  [2]string{"hook_event_name", "PreToolUse"}, ToolKey: "tool_name", Tools: []string{"Bash"}, Input: "tool_input", Command: "command", Cwd: "cwd",
				Pass: claudePass, Rewrite: claudeRewrite, Deny: claudeDeny, Dies: diesOpen},
			Gaps:  []string{"apply_patch and web search", "MCP servers", "what is typed into a command that runs (write_stdin)", "each command, as long as you have not trusted the hook: codex exec leaves an untrusted hook out and does not say so"},
			Steps: []string{"start codex once and trust the hook when it asks (/hooks)", restart}, Seen: "0.169.0"},

		{Name: "gemini", Title: "Gemini CLI", Programs: []string{"gemini"}, Dirs: []string{".gemini"},
			Files: map[Scope]string{User: ".gemini/settings.json", Project: ".gemini/settings.json"},
			Ask: &Ask{
				Edit:  Edit{Path: []string{"hooks", "BeforeTool"}, Append: true, Value: `{"matcher":"^run_shell_command$","hooks":[{"name":"atip-exec","type":"command","command":$HOOK,"timeout":` + hostLimit + `000}]}`},
				Known: []string{"session_id", "transcript_path", "cwd", "hook_event_name", "timestamp", "tool_name", "tool_input"},
				Kind:  [2]string{"hook_event_name", "BeforeTool"}, ToolKey: "tool_name", Tools: []string{"run_shell_command"}, Input: "tool_input", Command: "command", Cwd: "cwd", Dir: "dir_path",
				Inputs: []string{"description", "is_background", "delay_ms", "wait_for_previous"},
				Pass:   `{}`, Rewrite: `{"hookSpecificOutput":{"hookEventName":"BeforeTool","tool_input":$INPUT}}`, Deny: `{"decision":"deny","reason":$REASON}`, Dies: diesKilled},
			Shell: &ShellRow{InPath: true, Dies: byPath},
			Gaps:  []string{ownTools, "commands typed with ! and MCP servers, unless it is started with our shell first in PATH"},
			Steps: []string{"optional, so that our shell takes all commands: alias gemini='PATH=\"$BIN:$PATH\" gemini'", restart}, Seen: "0.61.0"},

		{Name: "qwen", Title: "Qwen Code", Programs: []string{"qwen"}, Dirs: []string{".qwen"},
			Files: map[Scope]string{User: ".qwen/settings.json", Project: ".qwen/settings.json"},
			Ask: &Ask{
				Edit:  Edit{Path: []string{"hooks", "PreToolUse"}, Append: true, Value: `{"matcher":"^run_shell_command$","hooks":[{"type":"command","command":$HOOK,"timeout":` + hostLimit + `000}]}`},
				Known: []string{"session_id", "source_type", "source_id", "transcript_path", "cwd", "hook_event_name", "timestamp", "permission_mode", "agent_id", "prompt_id", "tool_name", "tool_input", "tool_use_id", "tool_call_id"},
				Kind:  [2]string{"hook_event_name", "PreToolUse"}, ToolKey: "tool_name", Tools: []string{"run_shell_command"}, Input: "tool_input", Command: "command", Cwd: "cwd", Dir: "directory",
				Inputs: []string{"description", "is_background", "timeout"},
				Pass:   `{}`, Deny: "", Dies: diesOpen},
			Shell: &ShellRow{InPath: true, Dies: byPath},
			Gaps:  []string{ownTools, "commands typed with ! and MCP servers, unless it is started with our shell first in PATH"},
			Steps: []string{"start it with our shell first in PATH, as it takes no rewritten command: alias qwen='PATH=\"$BIN:$PATH\" qwen'; without that, each command is blocked until the model wraps it", restart}, Seen: "0.24.4"},

		{Name: "cursor", Title: "Cursor", Programs: []string{"cursor", "cursor-agent"}, Dirs: []string{".cursor"},
			Files: map[Scope]string{User: ".cursor/hooks.json", Project: ".cursor/hooks.json"},
			Base:  []Edit{{Path: []string{"version"}, Value: "1"}},
			Ask: &Ask{
				Edit:  Edit{Path: []string{"hooks", "preToolUse"}, Append: true, Value: `{"command":$HOOK,"matcher":"Shell","timeout":` + hostLimit + `,"failClosed":true}`},
				Known: []string{"conversation_id", "generation_id", "session_id", "model", "hook_event_name", "cursor_version", "workspace_roots", "user_email", "transcript_path", "cwd", "tool_name", "tool_input", "tool_use_id", "agent_message"},
				Kind:  [2]string{"hook_event_name", "preToolUse"}, ToolKey: "tool_name", Tools: []string{"Shell"}, Input: "tool_input", Command: "command", Cwd: "cwd", Dir: "working_directory",
				Inputs: []string{"description", "timeout", "is_background"},
				Pass:   `{"permission":"allow"}`, Rewrite: `{"permission":"allow","updated_input":$INPUT}`, Deny: `{"permission":"deny","user_message":$REASON,"agent_message":$REASON}`, Dies: diesClosed},
			Gaps: []string{ownTools, "MCP servers", "terminals that you open"}, Steps: []string{restart}, Seen: unverified},

		{Name: "copilot", Title: "Copilot CLI", Programs: []string{"copilot"}, Dirs: []string{".copilot"},
			Files: map[Scope]string{User: ".copilot/hooks/atip-exec.json", Project: ".github/hooks/atip-exec.json"},
			Base:  []Edit{{Path: []string{"version"}, Value: "1"}},
			Ask: &Ask{
				Edit:    Edit{Path: []string{"hooks", "preToolUse"}, Append: true, Value: `{"type":"command","bash":$HOOK,"timeoutSec":` + hostLimit + `}`},
				Known:   []string{"sessionId", "timestamp", "cwd", "toolName", "toolArgs", "traceparent", "tracestate"},
				ToolKey: "toolName", Tools: []string{"bash"}, Input: "toolArgs", InText: true, Command: "command", Cwd: "cwd",
				Inputs: []string{"description", "initial_wait", "mode", "sessionId", "shellId", "timeout", "detach"},
				Pass:   `{}`, Rewrite: `{"permissionDecision":"allow","modifiedArgs":$INPUT}`, Deny: `{"permissionDecision":"deny","permissionDecisionReason":$REASON}`,
				Dies: "a hook that takes too long lets the command run, a hook file that is gone or killed blocks; if our program is gone, hangs or prints garbage, the hook file blocks"},
			Gaps: []string{ownTools, "MCP servers", "what is typed into a shell that already runs"}, Steps: []string{restart}, Seen: "1.0.102"},

		{Name: "windsurf", Title: "Windsurf", Programs: []string{"windsurf"}, Dirs: []string{".codeium/windsurf"},
			Files: map[Scope]string{User: ".codeium/windsurf/hooks.json", Project: ".windsurf/hooks.json"},
			Ask: &Ask{
				Edit:  Edit{Path: []string{"hooks", "pre_run_command"}, Append: true, Value: `{"command":$HOOK,"show_output":true}`},
				Known: []string{"agent_action_name", "trajectory_id", "execution_id", "timestamp", "model_name", "tool_info"},
				Kind:  [2]string{"agent_action_name", "pre_run_command"}, Input: "tool_info", Command: "command_line", Dir: "cwd",
				Pass: `{}`, Dies: diesOpen},
			Gaps: []string{ownTools, "MCP servers", "terminals that you open"}, Steps: []string{"it takes no rewritten command: each command is blocked until the model wraps it", restart}, Seen: unverified},

		{Name: "opencode", Title: "OpenCode", Programs: []string{"opencode"}, Dirs: []string{".config/opencode"},
			Files: map[Scope]string{User: ".config/opencode/opencode.json", Project: "opencode.json"},
			Shell: &ShellRow{Edit: &Edit{Path: []string{"shell"}, Value: "$SHELL"}, Dies: "a shell file that is gone makes it take another shell"},
			Gaps:  []string{ownTools, "MCP servers", "plugins"}, Steps: []string{restart}, Seen: "1.18.33"},

		{Name: "pi", Title: "pi", Programs: []string{"pi"}, Dirs: []string{".pi"},
			Files: map[Scope]string{User: ".pi/agent/settings.json", Project: ".pi/settings.json"},
			Shell: &ShellRow{Edit: &Edit{Path: []string{"shellPath"}, Value: "$SHELL"}, Dies: diesClosed},
			Gaps:  []string{ownTools, "extensions"}, Steps: []string{restart}, Seen: "0.87.1"},

		{Name: "aider", Title: "aider", Programs: []string{"aider"}, Dirs: []string{".aider"},
			Shell: &ShellRow{Dies: "it starts what SHELL names"},
			Gaps:  []string{"its own edits of files", "lint and test commands of its settings that it starts itself"},
			Steps: []string{"start it with our shell: SHELL=$SHELL aider; any other program that starts $SHELL -c works the same way"}, Seen: unverified},
	}
}
