// Google Play, Firebase App Distribution and Google's token service for tests: stateful fakes, before them a proxy
// that checks every request and every answer against Google's own description.
//
// The first line of standard input is the configuration. Prints one line with the addresses, then answers each
// command on standard input with a line. Ends, with its children, when standard input does.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { MARK, read } from "../github/front.mjs";
import { Refusal, refusal } from "./answers.mjs";
import { description } from "./description.mjs";
import { Firebase } from "./firebase.mjs";
import { Front } from "./front.mjs";
import { Play } from "./play.mjs";
import { Tokens } from "./tokens.mjs";

const modules = fileURLToPath(new URL("node_modules", import.meta.url));
let proxy;

function end(code = 0) {
  proxy?.kill("SIGKILL");
  process.exit(code);
}

function failed(message) {
  process.stderr.write(`google.mjs: ${message}\n`);
  end(1);
}

// The proxy ends with its standard input, so that none is left even when this process is killed.
const TIED = `data:text/javascript,process.stdin.on("close",()=>process.exit()).resume()`;

function startProxy(upstream) {
  const script = join(modules, "@stoplight", "prism-cli", "dist", "index.js");
  const args = ["proxy", "--errors", "--no-cors", "--host", "127.0.0.1", "--port", "0", description(), upstream];
  const env = { ...process.env, NO_COLOR: "1", FORCE_COLOR: "0" };
  proxy = spawn(process.execPath, ["--import", TIED, script, ...args], { env });
  let said = "";
  return new Promise((resolve, reject) => {
    const hear = (text) => {
      said += text;
      const [, address] = said.match(/is listening on (http:\S+)/) ?? [];
      if (!address) return;
      for (const stream of [proxy.stdout, proxy.stderr]) stream.off("data", hear).resume();
      resolve(address);
    };
    for (const stream of [proxy.stdout, proxy.stderr]) stream.setEncoding("utf8").on("data", hear);
    proxy.on("error", reject);
    proxy.on("exit", (code) => reject(new Error(`the proxy ended with ${code}\n${said}`)));
  });
}

/// Answers what the proxy lets pass.
function answer({ method, url, headers }, body) {
  const { pathname: path, searchParams: query } = new URL(url, "http://fake");
  const isPlay = path.includes("/androidpublisher/");
  const account = tokens.accountOf(headers, isPlay ? "play" : "firebase");
  if (!account) return refusal(401, "authError", "Request had invalid authentication credentials.");
  return (isPlay ? play : firebase).answer(account, { method, path, query, headers, body });
}

function startFakes() {
  const server = createServer(async (request, response) => {
    let made;
    try {
      const sent = await read(request);
      made = answer(request, front.bodies.get(request.headers["x-body"]) ?? sent);
    } catch (error) {
      if (!(error instanceof Refusal)) process.stderr.write(`${error.stack}\n`);
      made = error.answer ?? refusal(500, "backendError", "Internal error encountered.");
    }
    const bare = made.status === 204;
    response.writeHead(made.status, { ...made.headers, [MARK]: "fake" }).end(bare ? undefined : made.body);
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${server.address().port}`));
  });
}

const named = (name) => play.apps.get(name) ?? [...firebase.apps.values()].find((app) => app.name.endsWith(`/${name}`));

const seen = () => ({
  play: Object.fromEntries(play.apps),
  firebase: Object.fromEntries([...firebase.apps.values()].map((app) => [app.name.split("/").at(-1), app])),
  tokens: tokens.issued,
  requests: front.requests,
  violations: front.violations,
});

const done = { ok: true };
const commands = {
  // What the store has seen: `play` by package name, `firebase` by app id, `tokens`, `requests`, `violations`.
  state: seen,
  // The same of one app: {name}, a package name or the id of an app in Firebase.
  app: ({ name }) => ({ app: named(name) }),
  violations: () => ({ violations: front.violations }),
  // Add an app, or change what it is like: see `app` in play.mjs and firebase.mjs.
  playApp: (app) => play.app(app) ?? done,
  firebaseApp: (app) => firebase.app(app) ?? done,
  // Add a key of a service account: {clientEmail, privateKeyId, privateKey}, or change it: {…, disabled}.
  account: (account) => tokens.account(account) ?? done,
  // No token that was issued is worth anything any more.
  revoke: () => tokens.revoke() ?? done,
  // What is in a file: {sha256, packageName, versionCode, signed}. Files whose first line says so need no word.
  content: ({ sha256, ...content }) => play.contents.set(sha256, content) && done,
  // The review of an app ends: {packageName, outcome: "PUBLISHED" | "APPROVED_NOT_PUBLISHED" | "NOT_APPROVED"}.
  review: (review) => play.review(review) ?? done,
  // Somebody changes a track in the console: {packageName, track, releases}.
  console: (change) => play.console(change) ?? done,
  // The open edits of an app end: {packageName, how: "deleted" | "expired" | "committed"}.
  endEdits: (edits) => play.endEdits(edits) ?? done,
  endUploads: () => play.endUploads() ?? done,
  // Of the next chunks, only a part arrives.
  losing: ({ chunks }) => ((play.losing = chunks), done),
  // How often an upload to Firebase is asked about before it is done.
  delay: ({ polls }) => ((firebase.delay = polls), done),
  // Requests go wrong: {path, method, skip, times, how: "cutBefore" | "cutAfter" | "hang" | {status, retryAfter,
  // reason, message}}; path is a pattern.
  fail: (fault) => front.fail(fault) ?? done,
  // They go well again: {path}, as it was given, or all of them.
  heal: (faults) => front.heal(faults) ?? done,
  // Forgets the requests.
  reset: () => ((front.requests.length = 0), done),
};

for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => end());
if (!existsSync(modules)) failed("`npm ci --ignore-scripts` has not been run here");

const input = createInterface({ input: process.stdin });
input.on("close", () => end());
const lines = input[Symbol.asyncIterator]();
const config = JSON.parse((await lines.next()).value);
const front = new Front((headers, body) => tokens.issue(headers, body));
const base = await front.listen();
const tokens = new Tokens(`${base}/token`);
const play = new Play(base);
const firebase = new Firebase();
for (const account of config.accounts) tokens.account(account);
const checked = await startProxy(await startFakes()).catch((error) => failed(error.message));
front.through(checked);
console.log(JSON.stringify({ play: base, firebase: base, token: `${base}/token` }));

for await (const line of lines) {
  const { do: name, ...command } = JSON.parse(line);
  const said = async () => commands[name](command);
  console.log(JSON.stringify(await said().catch((error) => ({ error: String(error) }))));
}
