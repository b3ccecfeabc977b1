// Calls a server with the TypeScript SDK, over stdio and over HTTP.
import assert from "node:assert";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [program, cwd, url, token] = process.argv.slice(2);
const transports = {
  stdio: new StdioClientTransport({ command: program, args: ["mcp", "--runfile"], cwd, env: { HOME: process.env.HOME, PATH: process.env.PATH } }),
  http: new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }),
};
for (const [name, transport] of Object.entries(transports)) {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  for (const tool of ["exec", "explain", "prime", "show"]) assert(tools.some((t) => t.name === tool), `${name}: no ${tool}`);
  const shown = await client.callTool({ name: "show", arguments: { word: "$(id)" } });
  assert.equal(shown.content[0].text, "<$(id)>", name);
  const failed = await client.callTool({ name: "exec", arguments: { command: "echo out; exit 9" } });
  assert(failed.isError && failed.structuredContent.exit_code === 9, name);
  const asked = await client.callTool({ name: "exec", arguments: { argv: ["git", "push", "--force"] } });
  assert(asked.isError && asked.content[0].text.includes("E2010"), name);
  await assert.rejects(client.callTool({ name: "nothing" }).then((r) => { if (r.isError) throw new Error("isError"); }), name);
  await client.close();
}
