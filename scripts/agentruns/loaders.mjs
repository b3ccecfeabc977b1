// Lets the agents themselves read the settings that `atip init` writes, where one has a command
// that validates or prints them. Each must take ours, and refuse the same file with a mistake.
//
// Usage: node loaders.mjs NODE_MODULES PROGRAMS WORK; scripts/agentruns/run calls it like play.mjs.
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

const [modules, programs, work] = process.argv.slice(2);
const arch = process.arch === "arm64" ? "arm64" : "x64";
const npm = (name) => fs.globSync(path.join(modules, name))[0];

// loaders is the table: the command that reads the settings, what it says of good ones (`home` is
// that of the session) and of bad ones. Codex is asked over its protocol and ends when its input does.
const loaders = {
  claude: {
    modes: ["shell", "hook"], argv: () => [npm(`@anthropic-ai/claude-code-linux-${arch}/claude`), "doctor"],
    good: () => /Claude Code doctor/, bad: { hooks: { PreToolUse: "nope" } }, refusal: /Invalid settings/,
  },
  codex: {
    modes: ["hook"], argv: () => [npm(`@openai/codex-linux-${arch}/vendor/*/bin/codex`), "app-server"],
    input: (ws) => [{ id: 0, method: "initialize", params: { clientInfo: { name: "loaders", version: "1" } } }, { method: "initialized" }, { id: 1, method: "hooks/list", params: { cwds: [ws] } }],
    answered: /^\{"id":1,.*\}$/m,
    good: (home) => new RegExp(`"hooks":\\[\\{[^\\]]*"command":"${home}/.local/share/agent-tools/libexec/hook codex"[^]*"errors":\\[\\]`),
    bad: { hooks: { PreToolUse: "nope" } }, refusal: /"(warnings|errors)":\[[^\]]/,
  },
  gemini: {
    modes: ["hook"], argv: () => [process.execPath, npm("@google/gemini-cli/bundle/gemini.js"), "mcp", "list"],
    good: () => /No MCP servers/, bad: { hooks: { BeforeTool: "nope" } }, refusal: /Invalid configuration/,
  },
  opencode: {
    modes: ["shell"], argv: () => [npm(`opencode-linux-${arch}/bin/opencode`), "debug", "config"],
    good: (home) => new RegExp(`"shell": "${home}/.local/share/agent-tools/bin/bash"`), bad: { shell: 7 }, refusal: /Configuration is invalid/,
  },
};

// said is all that a loader prints, until it ends or has answered.
function said(loader, ws, env) {
  return new Promise((resolve) => {
    const [program, ...args] = loader.argv();
    const child = spawn(program, args, { cwd: ws, env, stdio: ["pipe", "pipe", "pipe"], detached: true });
    let text = "";
    const end = () => { try { process.kill(-child.pid, "SIGKILL"); } catch { /* it ended */ } };
    const limit = setTimeout(() => { text += "\n(it took too long)"; end(); }, 120_000);
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => { text += data; if (loader.answered?.test(text)) end(); });
    child.on("close", () => { clearTimeout(limit); resolve(text); });
    child.stdin.on("error", () => {});
    if (!loader.input) return child.stdin.end();
    for (const message of loader.input(ws)) child.stdin.write(JSON.stringify(message) + "\n");
  });
}

let failed = 0;
for (const [agent, loader] of Object.entries(loaders)) {
  for (const mode of loader.modes) {
    const base = path.join(work, `loader-${agent}-${mode}`), home = `${base}/home`, ws = `${base}/ws`;
    fs.mkdirSync(home, { recursive: true });
    fs.mkdirSync(ws);
    const env = { HOME: home, USER: "agent", LANG: "C.UTF-8", TERM: "dumb", SHELL: "/bin/bash", PATH: `${programs}:${path.dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin` };
    const init = spawnSync(`${programs}/atip`, ["init", agent, "--yes", "-o", "json", "--mode", mode], { cwd: ws, env, encoding: "utf8" });
    if (init.status !== 0) throw new Error(`${agent}: atip init: ${init.stdout}${init.stderr}`);
    const check = (what, holds, text) => {
      console.log(`${holds ? "ok  " : "FAIL"}  ${`${agent}-${mode}`.padEnd(22)} ${what}`);
      if (!holds) failed++, console.log(text.slice(-3000));
    };
    const ours = await said(loader, ws, env);
    check("its own loader takes our settings", loader.good(home).test(ours) && !loader.refusal.test(ours), ours);
    fs.writeFileSync(JSON.parse(init.stdout).agents[0].file, JSON.stringify(loader.bad));
    const wrong = await said(loader, ws, env);
    check("and refuses a mistake in them", loader.refusal.test(wrong), wrong);
  }
}
process.exit(failed ? 1 : 0);
