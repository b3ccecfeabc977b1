// A model on loopback that plays a script of shell commands, in the protocols of the agents
// that scripts/agentruns/run starts. It writes the calls and their results to a file.
import fs from "node:fs";
import http from "node:http";

const [scriptFile, logFile, portFile, tool, fixed = "{}"] = process.argv.slice(2);
const script = JSON.parse(fs.readFileSync(scriptFile, "utf8"));
const log = (kind, value) => fs.appendFileSync(logFile, `${kind} ${JSON.stringify(value)}\n`);
let next = 0;

// call is the next command, if the request offers the shell of the agent.
function call(names) {
  if (!names.includes(tool) || next >= script.length) return null;
  log("CALL", script[next]);
  return { id: `call_${next}`, args: { command: script[next++], ...JSON.parse(fixed) } };
}

function events(answer, list) {
  answer.writeHead(200, { "content-type": "text/event-stream" });
  for (const [type, data] of list) answer.write(`${type ? `event: ${type}\n` : ""}data: ${typeof data === "string" ? data : JSON.stringify(type ? { type, ...data } : data)}\n\n`);
  answer.end();
}

function anthropic(body, answer) {
  const last = (body.messages ?? []).at(-1);
  for (const part of Array.isArray(last?.content) ? last.content : []) if (part.type === "tool_result") log("RESULT", part.content);
  const c = call((body.tools ?? []).map((t) => t.name));
  const message = { id: "m", type: "message", role: "assistant", model: body.model, content: [], stop_reason: null, usage: { input_tokens: 1, output_tokens: 1 } };
  if (!body.stream) {
    answer.writeHead(200, { "content-type": "application/json" });
    return answer.end(JSON.stringify({ ...message, content: [{ type: "text", text: "done" }], stop_reason: "end_turn" }));
  }
  events(answer, [
    ["message_start", { message }],
    ["content_block_start", { index: 0, content_block: c ? { type: "tool_use", id: c.id, name: tool, input: {} } : { type: "text", text: "" } }],
    ["content_block_delta", { index: 0, delta: c ? { type: "input_json_delta", partial_json: JSON.stringify(c.args) } : { type: "text_delta", text: "done" } }],
    ["content_block_stop", { index: 0 }],
    ["message_delta", { delta: { stop_reason: c ? "tool_use" : "end_turn" }, usage: { output_tokens: 1 } }],
    ["message_stop", {}],
  ]);
}

function responses(body, answer) {
  for (const item of (body.input ?? []).slice(-1)) if (/output/.test(item.type)) log("RESULT", item.output);
  const c = call((body.tools ?? []).map((t) => t.name ?? t.type));
  const item = c
    ? { type: "function_call", id: c.id, call_id: c.id, name: tool, arguments: JSON.stringify({ cmd: c.args.command }), status: "completed" }
    : { type: "message", id: "m", role: "assistant", status: "completed", content: [{ type: "output_text", text: "done", annotations: [] }] };
  const usage = { input_tokens: 1, input_tokens_details: null, output_tokens: 1, output_tokens_details: null, total_tokens: 2 };
  events(answer, [["response.created", { response: { id: "r" } }], ["response.output_item.done", { output_index: 0, item }], ["response.completed", { response: { id: "r", usage } }]]);
}

function chat(body, answer) {
  const last = (body.messages ?? []).at(-1) ?? {};
  if (last.role === "tool") log("RESULT", last.content);
  const c = call((body.tools ?? []).map((t) => t.function.name));
  const delta = c
    ? { role: "assistant", content: null, tool_calls: [{ index: 0, id: c.id, type: "function", function: { name: tool, arguments: JSON.stringify(c.args) } }] }
    : { role: "assistant", content: "done" };
  const finish = c ? "tool_calls" : "stop", usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const chunk = (delta, finish_reason) => ({ id: "c", object: "chat.completion.chunk", created: 1, model: body.model, choices: [{ index: 0, delta, finish_reason }] });
  if (!body.stream) {
    answer.writeHead(200, { "content-type": "application/json" });
    return answer.end(JSON.stringify({ id: "c", object: "chat.completion", created: 1, model: body.model, choices: [{ index: 0, message: delta, finish_reason: finish }], usage }));
  }
  events(answer, [["", chunk(delta, null)], ["", { ...chunk({}, finish), usage }], ["", "[DONE]"]]);
}

function gemini(body, answer, stream) {
  for (const part of (body.contents ?? []).at(-1)?.parts ?? []) if (part.functionResponse) log("RESULT", part.functionResponse.response);
  const names = (body.tools ?? []).flatMap((t) => (t.functionDeclarations ?? []).map((f) => f.name));
  const c = call(names);
  const parts = [c ? { functionCall: { name: tool, args: c.args } } : { text: "done" }];
  const whole = { candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }], usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 } };
  if (stream) return events(answer, [["", whole]]);
  answer.writeHead(200, { "content-type": "application/json" });
  answer.end(JSON.stringify(whole));
}

const server = http.createServer((request, answer) => {
  let text = "";
  request.on("data", (data) => (text += data));
  request.on("end", () => {
    let body = {};
    try { body = JSON.parse(text); } catch { /* a request without a body */ }
    const url = request.url;
    if (url.includes("count_tokens") || url.includes("countTokens")) return answer.end('{"input_tokens":1,"totalTokens":1}');
    if (url.includes("/messages")) return anthropic(body, answer);
    if (url.includes("/responses")) return responses(body, answer);
    if (url.includes("chat/completions")) return chat(body, answer);
    if (url.includes("enerateContent")) return gemini(body, answer, url.includes("stream"));
    answer.writeHead(200, { "content-type": "application/json" });
    answer.end('{"object":"list","data":[],"models":[]}');
  });
});
server.listen(0, "127.0.0.1", () => fs.writeFileSync(portFile, String(server.address().port)));
