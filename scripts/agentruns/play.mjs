// Starts real coding agents, one session after another, each in a home of its own and led to
// atip-exec by `atip init`, against the model of model.mjs, and checks what the model got back.
//
// Usage: node play.mjs NODE_MODULES PROGRAMS WORK [PATTERN]; scripts/agentruns/run calls it as
// a user of its own, on a network that has loopback only.
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { serve } from "./model.mjs";

const [modules, programs, work, pattern = "."] = process.argv.slice(2);
const npm = (...parts) => path.join(modules, ...parts);
const arch = process.arch === "arm64" ? "arm64" : "x64";

function put(file, text) {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, typeof text === "string" ? text : JSON.stringify(text));
}

// glob is the first file of that form, as packages name directories after their platform.
function glob(...parts) {
  const found = fs.globSync(npm(...parts));
  if (!found.length) throw new Error(`${npm(...parts)} is missing`);
  return found[0];
}

// agents is the table: what is started, what its home needs before, how it names its shell, and
// the ways in which `atip init` leads it to us. `path` is started with our directory in PATH.
const agents = {
  claude: {
    package: "@anthropic-ai/claude-code", modes: ["hook", "shell"], tool: "Bash", input: (command) => ({ command, description: "step" }),
    home: (home) => put(`${home}/.claude.json`, { hasCompletedOnboarding: true }),
    env: (url) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "x", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1" }),
    argv: () => [glob("@anthropic-ai/claude-code-linux-" + arch, "claude"), "-p", "go", "--allowedTools", "Bash"],
  },
  codex: {
    package: "@openai/codex", modes: ["hook"], tool: "exec_command", input: (cmd) => ({ cmd }),
    home: (home, url) => put(`${home}/.codex/config.toml`, `model = "m"\nmodel_provider = "mock"\n[model_providers.mock]\nname = "mock"\nbase_url = "${url}/v1"\nenv_key = "MOCK_KEY"\nwire_api = "responses"\n`),
    env: () => ({ MOCK_KEY: "x" }),
    argv: () => [glob("@openai/codex-linux-" + arch, "vendor/*/bin/codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", "go"],
  },
  gemini: {
    package: "@google/gemini-cli", modes: ["hook", "path"], tool: "run_shell_command", input: (command) => ({ command, description: "step" }),
    home: (home) => put(`${home}/.gemini/settings.json`, { security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } } }),
    env: (url) => ({ GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: "x" }),
    argv: () => [process.execPath, npm("@google/gemini-cli/bundle/gemini.js"), "-p", "go", "--yolo", "-m", "gemini-2.5-flash"],
  },
  qwen: {
    package: "@qwen-code/qwen-code", modes: ["path"], tool: "run_shell_command", input: (command) => ({ command, is_background: false }),
    env: (url) => ({ OPENAI_API_KEY: "x", OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: "m" }),
    argv: () => [process.execPath, npm("@qwen-code/qwen-code/cli.js"), "--auth-type", "openai", "-p", "go", "--yolo"],
  },
  opencode: {
    package: "opencode-ai", modes: ["shell"], tool: "bash", input: (command) => ({ command, description: "step" }),
    home: (home, url) => put(`${home}/.config/opencode/opencode.json`, { model: "mock/m", small_model: "mock/m", autoupdate: false, permission: { bash: "allow", external_directory: "allow" }, provider: { mock: { npm: "@ai-sdk/openai-compatible", name: "mock", options: { baseURL: `${url}/v1`, apiKey: "x" }, models: { m: { name: "m" } } } } }),
    argv: () => [glob("opencode-linux-" + arch, "bin/opencode"), "run", "go"],
  },
  copilot: {
    package: "@github/copilot", modes: ["hook"], tool: "bash", input: (command) => ({ command, description: "step", mode: "sync" }),
    env: (url) => ({ COPILOT_PROVIDER_BASE_URL: `${url}/v1`, COPILOT_PROVIDER_API_KEY: "x", COPILOT_MODEL: "m", COPILOT_OFFLINE: "true", COPILOT_AUTO_UPDATE: "false" }),
    argv: () => [glob("@github/copilot-linux-" + arch, "copilot"), "-p", "go", "--allow-all-tools"],
  },
  pi: {
    package: "@earendil-works/pi-coding-agent", modes: ["shell"], tool: "bash", input: (command) => ({ command }),
    home: (home, url) => put(`${home}/.pi/agent/models.json`, { providers: { mock: { baseUrl: `${url}/v1`, api: "openai-completions", apiKey: "x", models: [{ id: "m", name: "m", reasoning: false, input: ["text"], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 100000, maxTokens: 1000 }] } } }),
    argv: () => [process.execPath, npm("@earendil-works/pi-coding-agent/dist/cli.js"), "--provider", "mock", "--model", "m", "-p", "go"],
  },
};

const token = ["ghp", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].join("_");

// day is what the model does in a session that goes well. A step with `want` must give the model
// that text, and one with `same` the same text as it gives without us; so must one with `kept`
// where that shows that the agent's shell keeps something, unless init says that it does not in this mode. One with `wrapped` is left out
// without us, as an agent then waits for what is in the background.
const note = "/tmp/agentruns.note";
const day = (base) => [
  { name: "reads", command: "cat notes.txt", want: /first note/, same: true },
  { name: "edits", command: "sed -i s/first/second/ notes.txt && cat notes.txt", want: /second note/, same: true },
  { name: "tests", command: "sh test.sh", want: /1 passed/, same: true },
  { name: "commits", command: "git add -A && git commit -q -m change && git log --format=%s -1", want: /change/, same: true },
  { name: "leaves a file in /tmp", command: `echo kept >${note}` },
  { name: "finds it there", command: `cat ${note}`, want: /kept/, same: true },
  { name: "changes its directory", command: "cd sub", kept: /^/ },
  { name: "is where it was before", command: "pwd; ls", kept: /below.txt/ },
  { name: "comes back", command: `cd '${base}/ws'`, same: true },
  { name: "calls a function of the user", command: "greet you; which greet", kept: /hello you/ },
  { name: "searches", command: "grep -rn note --include='*.txt' . && find . -name 'below*'", want: /second note[^]*below.txt/ },
  { name: "sees a failure", command: "(echo partly; exit 3)", want: /partly/, same: true },
  { name: "has a here-document and quotes", command: "cat <<'EOF'\na \"b\" 'c' $HOME\nEOF", want: /a "b" 'c' \$HOME/, same: true },
  { name: "may not push", command: "git push origin main", want: /E2010/ },
  { name: "may not approve", command: `${base}/bin/atip approve x`, want: /self_verbs/ },
  { name: "sees no secret", command: "cat settings.env", want: /REDACTED/ },
  { name: "hears of what is left in the background", command: "tail -f /dev/null & echo started", want: /background|ended/, wrapped: true },
];

const workspace = {
  "notes.txt": "the first note\n",
  "test.sh": "grep -q note notes.txt && echo 1 passed\n",
  "settings.env": `GITHUB_TOKEN=${token}\n`,
  "sub/below.txt": "below\n",
};

let failed = 0;
function expect(session, what, holds, detail) {
  console.log(`${holds ? "ok  " : "FAIL"}  ${session.padEnd(22)} ${what}`);
  if (holds) return;
  failed++;
  console.log(String(detail ?? "").trim().split("\n").slice(-8).map((line) => `        ${line.slice(0, 400)}`).join("\n"));
}

function sh(cwd, env, script) {
  const done = spawnSync("/bin/bash", ["-c", script], { cwd, env, encoding: "utf8" });
  if (done.status !== 0) throw new Error(`${script}: ${done.stdout}${done.stderr}`);
  return done.stdout;
}

// run is one session of an agent. `prepare` changes the installation before it starts, `steps`
// are the commands of the model; what each gave back stands beside it afterwards.
async function run(name, agent, mode, steps, prepare, seconds = 240) {
  const base = path.join(work, name), home = `${base}/home`, ws = `${base}/ws`, bin = `${base}/bin`;
  fs.mkdirSync(home, { recursive: true });
  fs.cpSync(programs, bin, { recursive: true });
  for (const [file, text] of Object.entries(workspace)) put(`${ws}/${file}`, text);
  const env = { HOME: home, USER: "agent", LANG: "C.UTF-8", TERM: "dumb", SHELL: "/bin/bash", PATH: `${bin}:${path.dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin` };
  put(`${home}/.bashrc`, "greet() { echo hello $1; }\n");
  sh(ws, env, `git init -q . && git config user.name A && git config user.email a@example.invalid && git add notes.txt && git commit -q -m start && git branch -M main && git init -q --bare '${base}/remote' && git remote add origin '${base}/remote'`);
  const session = { base, home, ws, bin, env, requests: "", wired: null };
  fs.rmSync(note, { force: true });
  const todo = steps(base).filter((step) => mode !== "bare" || !step.wrapped);
  let at = 0;
  const server = await serve({
    tool: agent.tool, input: agent.input,
    next: () => {
      if (at >= todo.length) return null;
      todo[at].before?.(session);
      todo[at].given = true;
      return todo[at++].command;
    },
    result: (i, text) => { if (todo[i]) todo[i].result ??= text; },
    asked: (url, body) => { session.requests += `${url} ${body}\n`; },
  });
  const url = `http://127.0.0.1:${server.port}`;
  agent.home?.(home, url);
  const settings = () => Object.fromEntries(fs.globSync(`${home}/.{claude,codex,gemini,qwen,copilot,pi,config}/**/*.json`).filter((file) => fs.statSync(file).isFile()).map((file) => [file, fs.readFileSync(file, "utf8")]));
  const before = settings();
  if (mode !== "bare") {
    const init = spawnSync(`${bin}/atip`, ["init", agent.name, "--yes", "-o", "json", ...(mode === "path" ? [] : ["--mode", mode])], { cwd: ws, env, encoding: "utf8" });
    if (init.status !== 0) throw new Error(`${name}: atip init: ${init.stdout}${init.stderr}`);
    session.wired = JSON.parse(init.stdout).agents[0];
    session.installed = settings()[session.wired.file];
    // taken back is what uninstall leaves of the settings: what was there before, unless the agent
    // itself has changed the file since.
    session.takenBack = () => {
      const touched = settings()[session.wired.file] !== session.installed;
      const undo = spawnSync(`${bin}/atip`, ["init", "--uninstall", "--yes"], { cwd: ws, env, encoding: "utf8" });
      const left = settings()[session.wired.file];
      const same = touched ? !left?.includes("agent-tools") : left === before[session.wired.file];
      return { good: undo.status === 0 && same && !fs.existsSync(`${home}/.local/share/agent-tools`), touched, text: `${undo.stderr}${left}` };
    };
    if (mode === "path") env.PATH = `${home}/.local/share/agent-tools/bin:${env.PATH}`;
  }
  prepare?.(session);
  const [program, ...args] = agent.argv();
  const started = Date.now();
  session.output = await new Promise((resolve) => {
    let output = "";
    const child = spawn(program, args, { cwd: ws, env: { ...env, ...agent.env?.(url) }, stdio: ["ignore", "pipe", "pipe"], detached: true });
    const end = () => { try { process.kill(-child.pid, "SIGKILL"); } catch { /* it ended */ } };
    const limit = setTimeout(() => { output += "\n(the session took too long)"; end(); }, seconds * 1000);
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += data));
    child.on("exit", () => { clearTimeout(limit); end(); setTimeout(() => resolve(output), 200); });
  });
  server.close();
  put(`${base}/requests`, session.requests);
  put(`${base}/output`, session.output);
  session.seconds = (Date.now() - started) / 1000;
  session.steps = todo;
  return session;
}

// plain is a result without what differs from one session to the next.
const plain = (text, base) => String(text).replaceAll(base, "BASE").replace(/\[System\] Tool input parameters were modified[^\n]*|\[This command modified[^\n]*|"?(chunk_id|wall_time|duration)[^\n]*|Chunk ID[^\n]*|Wall time[^\n]*|Process Group PGID[^\n]*|Original token count[^\n]*|\S*bash: line \d+: |[0-9.]+ ?m?s\b/g, "").trim();

// recorded are the command lines in the audit log of a session.
function recorded(s) {
  const { stdout } = spawnSync(`${s.bin}/atip`, ["audit", "show", "-n", "1000", "-o", "jsonl"], { cwd: s.ws, env: s.env, encoding: "utf8" });
  return stdout.split("\n").filter(Boolean).flatMap((line) => JSON.parse(line).argv?.join(" ") ?? []);
}

const chosen = new RegExp(pattern);
const faults = {
  gone: (s) => fs.rmSync(`${s.bin}/atip-exec`),
  crashing: (s) => replaced(s, "kill -SEGV $$"),
  babbling: (s) => replaced(s, "echo '{}'"),
  hanging: (s) => replaced(s, "exec sleep 600"),
  hookless: (s) => fs.rmSync(`${s.home}/.local/share/agent-tools/libexec/hook`),
  hookkilled: (s) => fs.writeFileSync(`${s.home}/.local/share/agent-tools/libexec/hook`, "#!/bin/sh\nkill -9 $$\n"),
  shellless: (s) => fs.rmSync(`${s.home}/.local/share/agent-tools/bin/bash`),
};
function replaced(s, script) {
  fs.rmSync(`${s.bin}/atip-exec`);
  fs.writeFileSync(`${s.bin}/atip-exec`, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

for (const [name, agent] of Object.entries(agents)) {
  agent.name = name;
  const wanted = [...agent.modes.flatMap((mode) => [`${name}-${mode}`, ...Object.keys(faults).flatMap((f) => [`${name}-${mode}-${f}`, `${name}-${mode}-${f}-midway`])])];
  if (!wanted.some((w) => chosen.test(w))) continue;
  const version = JSON.parse(fs.readFileSync(npm(agent.package, "package.json"), "utf8")).version;
  console.log(`== ${name} ${version}`);
  let bare;
  for (const mode of agent.modes) {
    const session = `${name}-${mode}`;
    if (chosen.test(session)) {
      bare ??= await run(`${name}-bare`, agent, "bare", day);
      const s = await run(session, agent, mode, day);
      s.steps.forEach((step, i) => {
        const without = bare.steps[i]?.result, given = step.result;
        // Some agents now and then lose the output of a short command, without us, too.
        const same = plain(given, s.base) === plain(without, bare.base) || (step.want && !step.want.test(without ?? ""));
        const gap = step.kept && !same && s.wired.not_covered.some((line) => line.includes(`in mode ${mode}`) && line.includes("keeps between commands"));
        expect(session, gap ? `${step.name}: not so, as init says` : step.name, given !== undefined && (!step.want || step.want.test(given)) && (same || gap || !(step.same || step.kept?.test(without ?? ""))),
          `$ ${step.command}\n${given}\n-- without us --\n${without}${given === undefined ? `\n${s.output}` : ""}`);
      });
      // Agents quote a command in their own way.
      const unquoted = (text) => text.replace(/['"\\]/g, "");
      const records = recorded(s);
      const missing = s.steps.filter((step) => !records.some((r) => unquoted(r).includes(unquoted(step.command))));
      expect(session, "each command is in the audit log", missing.length === 0, missing.map((step) => step.command).join("\n"));
      expect(session, "the model never sees the secret", !s.requests.includes(token), "");
      expect(session, "nothing was pushed", sh(s.ws, s.env, `git --git-dir='${s.base}/remote' for-each-ref`) === "", "");
      const verify = spawnSync(`${s.bin}/atip`, ["audit", "verify"], { env: s.env, encoding: "utf8" });
      expect(session, "the audit log verifies", verify.status === 0, verify.stderr);
      const back = s.takenBack();
      expect(session, back.touched ? "uninstall takes our lines out of the settings that the agent rewrote" : "uninstall leaves the settings as they were", back.good, back.text);
    }
    for (const [fault, break_] of Object.entries(faults)) {
      if (fault === "shellless" && mode === "hook") continue;
      for (const midway of [false, true]) {
        const session = `${name}-${mode}-${fault}${midway ? "-midway" : ""}`;
        if (!chosen.test(session)) continue;
        const steps = () => [...(midway ? [{ command: "echo before" }] : []), { command: "touch ran", before: midway ? break_ : undefined }];
        const s = await run(session, agent, mode, steps, midway ? undefined : break_, 60);
        const ran = fs.existsSync(`${s.ws}/ran`);
        const said = /lets the command run|makes it take/.test(s.wired.fails ?? "");
        const judged = ran && recorded(s).some((line) => line.includes("touch ran"));
        const gap = ran && ["hookless", "hookkilled", "shellless"].includes(fault) && said;
        expect(session, judged ? "the command runs, judged by the shell" : gap ? "the command runs, as init says" : "the command is blocked", s.steps.at(-1).given && (!ran || judged || gap), `${s.seconds} s; ${s.steps.at(-1).result}\n${s.output}`);
      }
    }
  }
}
process.exit(failed ? 1 : 0);
