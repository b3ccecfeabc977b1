// The protocol of an adapter: a question {"id","cmd","cwd"} a line on stdin, an answer
// {"id","answer":"allow|ask|deny"} or {"id","error"} a line on stdout, in order.
import fs from 'node:fs'
import readline from 'node:readline'

export async function* questions() {
  for await (const line of readline.createInterface({ input: process.stdin })) yield JSON.parse(line)
}

export function reply(id, answer, error) {
  const known = ['allow', 'ask', 'deny'].includes(answer)
  fs.writeSync(1, JSON.stringify(known ? { id, answer } : { id, error: error ?? `the answer is ${answer}` }) + '\n')
}

export async function serve(decide) {
  for await (const q of questions()) {
    try {
      reply(q.id, await decide(q))
    } catch (e) {
      reply(q.id, undefined, String(e?.stack ?? e))
    }
  }
}
