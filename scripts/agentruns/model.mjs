// A model on loopback that plays a script of shell commands, in the protocols of the agents
// that scripts/agentruns/play.mjs starts, and tells what each command gave back.
import http from "node:http";

// serve starts a model whose next call is what `next()` gives, null at the end. `tool` is the
// name of the agent's shell tool and `input(command)` what it takes.
export async function serve({ tool, input, next, result, asked }) {
  let id = 0;
  const number = (id) => Number(String(id).replace(/^\D*/, "").replace(/\D.*/, ""));

  // call is the next command, if the request offers the shell of the agent.
  function call(names) {
    if (!names.includes(tool)) return null;
    const command = next();
    return command === null ? null : { id: `call_${id++}`, name: tool, args: input(command) };
  }

  const text = (value) => (typeof value === "string" ? value : Array.isArray(value) ? value.map((part) => part.text ?? JSON.stringify(part)).join("") : JSON.stringify(value));

  function events(answer, list) {
    answer.writeHead(200, { "content-type": "text/event-stream" });
    for (const [type, data] of list) answer.write(`${type ? `event: ${type}\n` : ""}data: ${typeof data === "string" ? data : JSON.stringify(type ? { type, ...data } : data)}\n\n`);
    answer.end();
  }

  function document(answer, value) {
    answer.writeHead(200, { "content-type": "application/json" });
    answer.end(JSON.stringify(value));
  }

  function anthropic(body, answer) {
    for (const { content } of body.messages ?? []) for (const part of Array.isArray(content) ? content : []) if (part.type === "tool_result") result(number(part.tool_use_id), text(part.content));
    const c = call((body.tools ?? []).map((t) => t.name));
    const message = { id: "m", type: "message", role: "assistant", model: body.model, content: [], stop_reason: null, usage: { input_tokens: 1, output_tokens: 1 } };
    if (!body.stream) return document(answer, { ...message, content: [{ type: "text", text: "done" }], stop_reason: "end_turn" });
    events(answer, [
      ["message_start", { message }],
      ["content_block_start", { index: 0, content_block: c ? { type: "tool_use", id: c.id, name: c.name, input: {} } : { type: "text", text: "" } }],
      ["content_block_delta", { index: 0, delta: c ? { type: "input_json_delta", partial_json: JSON.stringify(c.args) } : { type: "text_delta", text: "done" } }],
      ["content_block_stop", { index: 0 }],
      ["message_delta", { delta: { stop_reason: c ? "tool_use" : "end_turn" }, usage: { output_tokens: 1 } }],
      ["message_stop", {}],
    ]);
  }

  function responses(body, answer) {
    for (const item of body.input ?? []) if (/output/.test(item.type)) result(number(item.call_id), text(item.output));
    const c = call((body.tools ?? []).map((t) => t.name ?? t.type));
    const item = c
      ? { type: "function_call", id: c.id, call_id: c.id, name: c.name, arguments: JSON.stringify(c.args), status: "completed" }
      : { type: "message", id: "m", role: "assistant", status: "completed", content: [{ type: "output_text", text: "done", annotations: [] }] };
    const usage = { input_tokens: 1, input_tokens_details: null, output_tokens: 1, output_tokens_details: null, total_tokens: 2 };
    events(answer, [["response.created", { response: { id: "r" } }], ["response.output_item.done", { output_index: 0, item }], ["response.completed", { response: { id: "r", usage } }]]);
  }

  function chat(body, answer) {
    for (const message of body.messages ?? []) if (message.role === "tool") result(number(message.tool_call_id), text(message.content));
    const c = call((body.tools ?? []).map((t) => t.function.name));
    const delta = c
      ? { role: "assistant", content: null, tool_calls: [{ index: 0, id: c.id, type: "function", function: { name: c.name, arguments: JSON.stringify(c.args) } }] }
      : { role: "assistant", content: "done" };
    const finish = c ? "tool_calls" : "stop", usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const chunk = (delta, finish_reason) => ({ id: "c", object: "chat.completion.chunk", created: 1, model: body.model, choices: [{ index: 0, delta, finish_reason }] });
    if (!body.stream) return document(answer, { id: "c", object: "chat.completion", created: 1, model: body.model, choices: [{ index: 0, message: delta, finish_reason: finish }], usage });
    events(answer, [["", chunk(delta, null)], ["", { ...chunk({}, finish), usage }], ["", "[DONE]"]]);
  }

  function gemini(body, answer, stream) {
    const given = (body.contents ?? []).flatMap((content) => content.parts ?? []).filter((part) => part.functionResponse);
    given.forEach((part, i) => result(i, part.functionResponse.response.output ?? text(part.functionResponse.response)));
    const names = (body.tools ?? []).flatMap((t) => (t.functionDeclarations ?? []).map((f) => f.name));
    const c = call(names);
    const parts = [c ? { functionCall: { name: c.name, args: c.args } } : { text: "done" }];
    const whole = { candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }], usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 } };
    return stream ? events(answer, [["", whole]]) : document(answer, whole);
  }

  const server = http.createServer((request, answer) => {
    const parts = [];
    request.on("data", (data) => parts.push(data));
    request.on("end", () => {
      const raw = Buffer.concat(parts).toString();
      asked(request.url, raw);
      let body = {};
      try { body = JSON.parse(raw); } catch { /* a request without a body */ }
      const url = request.url;
      if (url.includes("count_tokens") || url.includes("countTokens")) return document(answer, { input_tokens: 1, totalTokens: 1 });
      if (url.includes("/messages")) return anthropic(body, answer);
      if (url.includes("/responses")) return responses(body, answer);
      if (url.includes("chat/completions")) return chat(body, answer);
      if (url.includes("enerateContent")) return gemini(body, answer, url.includes("stream"));
      document(answer, { object: "list", data: [], models: [] });
    });
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return { port: server.address().port, close: () => { server.closeAllConnections(); server.close(); } };
}
