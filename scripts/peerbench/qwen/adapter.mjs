// Asks the shell tool of @qwen-code/qwen-code for its default permission. The package is
// one program in many chunks, so the one that declares the class, and exports it, is looked for.
import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { serve } from '../serve.mjs'

const [, installed] = process.argv.slice(2)
const chunks = path.join(installed, 'node_modules/@qwen-code/qwen-code/chunks')
const found = fs
  .readdirSync(chunks)
  .map(name => path.join(chunks, name))
  .filter(file => /^var ShellToolInvocation = class/m.test(fs.readFileSync(file, 'utf8')))
if (found.length !== 1) throw new Error(`${found.length} chunks declare ShellToolInvocation, 1 expected`)

console.debug = console.log = console.info = () => {}
const { ShellToolInvocation } = await import(pathToFileURL(found[0]).href)
const workspace = process.cwd()
const config = { getTargetDir: () => workspace }

await serve(async ({ cmd, cwd }) => {
  const call = { command: cmd, is_background: false }
  if (cwd !== workspace) call.directory = cwd
  return new ShellToolInvocation(config, call).getDefaultPermission()
})
