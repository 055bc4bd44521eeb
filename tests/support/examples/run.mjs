// Runs the examples of a file, as `tests/examples.rs` writes it, against a server that answers each
// function with the reply of its example. Every language must send the parameters, and get the reply.
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isDeepStrictEqual, promisify } from "node:util";

const [, , file, apiUrl, svc] = process.argv;
const examples = JSON.parse(readFileSync(file, "utf8"));
const replies = new Map(examples.map(({ name, reply }) => [name, reply]));
const sdk = fileURLToPath(new URL("../../../sdk/typescript/", import.meta.url));
const ts = createRequire(join(sdk, "package.json"))("typescript");
const library = new URL("../parse-client/package.json", import.meta.url);
const Parse = createRequire(library)("parse/node");
const run = promisify(execFile);

// What came last, by function.
const came = new Map();
const server = createServer(async (request, response) => {
  let body = "";
  for await (const piece of request) {
    body += piece;
  }
  const name = request.url.split("/").pop();
  const sent = JSON.parse(body);
  // The Parse library says who it is in the body.
  const own = Object.entries(sent).filter(([field]) => !field.startsWith("_"));
  came.set(name, Object.fromEntries(own));
  response.setHeader("Content-Type", "application/json");
  response.end(JSON.stringify({ result: replies.get(name) }));
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const url = `http://127.0.0.1:${server.address().port}`;
const here = (text) => text.replaceAll(apiUrl, url);

const wrong = [];
function judge(language, { name, params }, reply) {
  if (!isDeepStrictEqual(came.get(name), params)) {
    wrong.push(`${language}: ${name} sent ${JSON.stringify(came.get(name))}`);
  }
  if (!isDeepStrictEqual(reply, replies.get(name))) {
    wrong.push(`${language}: ${name} got ${JSON.stringify(reply)}`);
  }
  came.delete(name);
}

async function attempt(language, example, call) {
  try {
    judge(language, example, await call());
  } catch (error) {
    wrong.push(`${language}: ${example.name}: ${error.stderr ?? error}`);
  }
}

const env = {
  PATH: `${join(svc, "..")}:${process.env.PATH}`,
  HOME: process.env.HOME,
  SESSION_TOKEN: "r:example",
  MASTER_KEY: "example",
  SVC_API_URL: url,
  SVC_TOKEN: `svc_dt_${"0".repeat(40)}`,
};
const shell = async (text) => (await run("sh", ["-c", here(text)], { env })).stdout;
for (const example of examples) {
  await attempt("curl", example, async () => JSON.parse(await shell(example.forms["curl"])).result);
  await attempt("svc", example, async () =>
    JSON.parse(await shell(`${example.forms["Command line"]} --json`)),
  );
}

// All examples in TypeScript are one program, which is compiled strictly.
const folder = mkdtempSync(join(sdk, "dist", "api-"));
try {
  const blocks = examples.map(
    ({ name, forms }) =>
      `calls.push([${JSON.stringify(name)}, async () => {\n${here(forms["TypeScript"])}\nreturn reply;\n}]);`,
  );
  const program = [
    'import { Client } from "@svc/client";',
    'const sessionToken = "r:example", masterKey = "example";',
    "export const calls: [string, () => Promise<unknown>][] = [];",
    ...blocks,
    "void [sessionToken, masterKey];",
  ];
  const source = join(folder, "calls.ts");
  writeFileSync(source, program.join("\n"));
  const config = ts.readConfigFile(join(sdk, "tsconfig.json"), ts.sys.readFile).config;
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, sdk);
  Object.assign(options, { rootDir: sdk, outDir: folder, declaration: false });
  const compiled = ts.createProgram([source], options);
  const problems = [...ts.getPreEmitDiagnostics(compiled), ...compiled.emit().diagnostics];
  if (problems.length > 0) {
    wrong.push(ts.formatDiagnostics(problems, ts.createCompilerHost(options)));
  }
  const emitted = ts.sys.readDirectory(folder).find((path) => path.endsWith("calls.js"));
  const { calls } = await import(pathToFileURL(emitted));
  for (const [name, call] of calls) {
    await attempt("TypeScript", examples.find((example) => example.name === name), call);
  }
} finally {
  rmSync(folder, { recursive: true });
}

const AsyncFunction = (async () => {}).constructor;
for (const example of examples) {
  const text = `${here(example.forms["Parse library"])}\nreturn reply;`;
  const call = new AsyncFunction("Parse", "sessionToken", "masterKey", text);
  await attempt("Parse", example, () => call(Parse, "r:example", "example"));
}

server.close();
if (wrong.length > 0) {
  console.error(wrong.join("\n"));
  process.exit(1);
}
console.log(`${examples.length} examples run in four languages`);
