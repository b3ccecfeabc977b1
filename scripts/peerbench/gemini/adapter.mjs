// Asks what @google/gemini-cli-core decides about a shell command. The argument names the
// part that is asked:
//   policy   the policy engine with its default policies, interactive: what a user meets
//   list     the list of commands known to be safe, which that engine consults
//   tools    that list or the tools that the sandbox approves by default
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { serve } from '../serve.mjs'

const [what, installed] = process.argv.slice(2)
const part = name => import(pathToFileURL(path.join(installed, 'node_modules/@google/gemini-cli-core/dist/src', name)).href)

// The engine reports each step on the console, and stdout is the answers'.
console.debug = console.log = console.info = () => {}

const { initializeShellParsers } = await part('utils/shell-utils.js')
await initializeShellParsers()

const workspace = process.cwd()
const asked = {
  async policy() {
    const { PolicyEngine } = await part('policy/policy-engine.js')
    const { createPolicyEngineConfig } = await part('policy/config.js')
    const { ApprovalMode } = await part('policy/types.js')
    const engine = new PolicyEngine(await createPolicyEngineConfig({}, ApprovalMode.DEFAULT, undefined, true))
    const answers = { allow: 'allow', ask_user: 'ask', deny: 'deny' }
    return async ({ cmd, cwd }) => {
      const args = { command: cmd }
      if (cwd !== workspace) args.dir_path = cwd
      return answers[(await engine.check({ name: 'run_shell_command', args })).decision]
    }
  },
  async list() {
    const { isKnownSafeCommand } = await part('sandbox/utils/commandSafety.js')
    return async ({ cmd, cwd }) => (isKnownSafeCommand(['bash', '-c', cmd], cwd, workspace) ? 'allow' : 'ask')
  },
  async tools() {
    const { isStrictlyApproved } = await part('sandbox/utils/commandUtils.js')
    const { SandboxPolicyManager } = await part('policy/sandboxPolicyManager.js')
    const tools = SandboxPolicyManager.DEFAULT_CONFIG.modes.default.approvedTools
    return async ({ cmd }) => {
      try {
        return (await isStrictlyApproved({ command: cmd, args: [] }, tools)) ? 'allow' : 'ask'
      } catch (e) {
        // Nobody catches it in gemini either, so the command does not run.
        if (/^Bad substitution/.test(e.message)) return 'deny'
        throw e
      }
    }
  },
}
await serve(await asked[what]())
