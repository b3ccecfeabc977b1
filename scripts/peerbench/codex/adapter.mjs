// Asks @openai/codex. Its lists are inside a compiled program that no option prints, so the
// program itself is run against a model of our own on this loopback, which calls the shell
// tool with one command after the other: a request for approval means ask, a refusal deny,
// a start allow. The program finds no shell but a stub that does nothing (see jail.go).
// The argument is the approval policy: on-request or untrusted. Its own sandbox is off: it
// is not what is asked about, and where it cannot be made codex asks for that reason.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import readline from 'node:readline'
import { questions, reply } from '../serve.mjs'

const [policy, installed] = process.argv.slice(2)
// What was said before is sent with each request; a new thread bounds it.
const perThread = 40

const waiting = questions()
let current // the question that the program is busy with
let used = 0
let ended = false

// verdict reads what the program reports to the model about a call.
function verdict(output) {
  const text = typeof output === 'string' ? output : JSON.stringify(output ?? null)
  if (current.asked) return reply(current.id, 'ask')
  if (/CreateProcess \{ message: "Rejected\(/.test(text)) return reply(current.id, 'deny')
  if (/Process exited with code \d+|Process running with session/.test(text)) return reply(current.id, 'allow')
  reply(current.id, undefined, `codex says: ${text.slice(0, 400)}`)
}

function stream(res, item) {
  const event = e => res.write(`event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`)
  const usage = { input_tokens: 0, input_tokens_details: null, output_tokens: 0, output_tokens_details: null, total_tokens: 0 }
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  event({ type: 'response.created', response: { id: 'r' } })
  event({ type: 'response.output_item.done', item })
  event({ type: 'response.completed', response: { id: 'r', usage } })
  res.end()
}

const message = { type: 'message', role: 'assistant', id: 'm', content: [{ type: 'output_text', text: 'done' }] }

async function model(request, res) {
  const shell = request.tools?.find(t => t.name === 'exec_command')
  if (!shell) return stream(res, message)
  if (current) {
    const result = request.input.find(i => i.type === 'function_call_output' && i.call_id === current.call)
    if (!result) throw new Error('a request without the result of the last call')
    verdict(result.output)
    current = undefined
  }
  if (used >= perThread) return stream(res, message)
  const { value: q, done } = await waiting.next()
  if (done) {
    ended = true
    return stream(res, message)
  }
  current = { id: q.id, call: `call${used++}`, asked: false }
  stream(res, { type: 'function_call', name: shell.name, call_id: current.call, arguments: JSON.stringify({ cmd: q.cmd, workdir: q.cwd }) })
}

function fail(e) {
  if (current) reply(current.id, undefined, String(e?.stack ?? e))
  else process.stderr.write(`${e?.stack ?? e}\n`)
  process.exit(1)
}

const server = http.createServer((req, res) => {
  let body = ''
  req.on('data', d => (body += d))
  req.on('end', () => {
    if (!req.url.endsWith('/responses')) return res.writeHead(404).end()
    model(JSON.parse(body), res).catch(fail)
  })
})
await new Promise(done => server.listen(0, '127.0.0.1', done))

const provider = `model_providers.peer={name="peer",base_url="http://127.0.0.1:${server.address().port}/v1",wire_api="responses",requires_openai_auth=false}`
// Older packages call the directory codex, newer ones bin.
const scope = path.join(installed, 'node_modules/@openai')
const program = fs.readdirSync(scope, { recursive: true }).find(name => /vendor\/[^/]+\/(bin|codex)\/codex$/.test(name))
if (!program) fail(new Error(`no program codex below ${scope}`))

fs.mkdirSync(process.env.CODEX_HOME, { recursive: true })
const codex = spawn(path.join(scope, program), ['app-server', '-c', 'model_provider="peer"', '-c', 'model="peer"', '-c', provider], { stdio: ['pipe', 'pipe', 'ignore'] })
codex.on('error', fail)
codex.on('exit', code => (ended ? process.exit(0) : fail(new Error(`codex ended with status ${code}`))))

const send = m => codex.stdin.write(JSON.stringify(m) + '\n')
const pending = new Map()
let last = 0
const call = (method, params) =>
  new Promise((done, failed) => {
    pending.set(++last, { done, failed })
    send({ id: last, method, params })
  })

readline.createInterface({ input: codex.stdout }).on('line', line => {
  const m = JSON.parse(line)
  if (m.method && m.id !== undefined) {
    // It wants to know something, which in a run without a person is the approval.
    if (!/requestApproval$|^execCommandApproval$|^applyPatchApproval$/.test(m.method)) return fail(new Error(`codex asks ${m.method}`))
    if (current) current.asked = true
    return send({ id: m.id, result: { decision: 'decline' } })
  }
  if (m.id !== undefined) {
    const p = pending.get(m.id)
    pending.delete(m.id)
    return m.error ? p?.failed(new Error(JSON.stringify(m.error))) : p?.done(m.result)
  }
  if (m.method === 'turn/completed') {
    if (ended) return codex.kill()
    if (m.params?.turn?.error) return fail(new Error(JSON.stringify(m.params.turn.error)))
    thread().catch(fail)
  }
})

async function thread() {
  used = 0
  const { thread } = await call('thread/start', { cwd: process.cwd(), approvalPolicy: policy, sandbox: 'danger-full-access', ephemeral: true })
  await call('turn/start', { threadId: thread.id, input: [{ type: 'text', text: 'go', text_elements: [] }] })
}

await call('initialize', { clientInfo: { name: 'peerbench', title: null, version: '1' }, capabilities: null })
send({ method: 'initialized' })
thread().catch(fail)
