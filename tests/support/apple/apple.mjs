// An App Store Connect for tests: our fake of it, before it a proxy that checks every request and every answer
// against Apple's description of the API.
//
// The first line of standard input is the configuration: `{"keys": [{"keyId", "issuerId", "publicKey", "role"}]}`,
// with `"issuerId": null` for the key of a person. Prints one line with the address, then answers each command on
// standard input with a line. Ends, with its children, when standard input does.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { description } from "./description.mjs";
import { Fake } from "./fake.mjs";
import { Front } from "./front.mjs";

const modules = fileURLToPath(new URL("node_modules", import.meta.url));
const children = [];
// A child ends with its standard input, so that none is left even when this process is killed.
const TIED = `data:text/javascript,process.stdin.on("close",()=>process.exit()).resume()`;

function end(status = 0) {
  for (const child of children) child.kill();
  process.exit(status);
}

function startProxy(upstream) {
  const script = join(modules, "@stoplight", "prism-cli", "dist", "index.js");
  const args = ["proxy", "--errors", "--no-cors", "--host", "127.0.0.1", "--port", "0", description(), upstream];
  const env = { ...process.env, NO_COLOR: "1", FORCE_COLOR: "0" };
  const child = spawn(process.execPath, ["--import", TIED, script, ...args], { env });
  children.push(child);
  let said = "";
  return new Promise((resolve, reject) => {
    const hear = (text) => {
      said = said.slice(-100_000) + text;
      const match = said.match(/is listening on (http:\S+)/);
      if (match) resolve(match[1]);
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("exit", (code) => reject(new Error(`the proxy ended with ${code}: ${said}`)));
  });
}

function state() {
  const { apps, builds: beta, versions } = fake;
  const files = beta.files.map(({ parts, operations, ...file }) => file);
  return {
    apps,
    uploads: beta.uploads,
    files,
    builds: beta.builds,
    groups: beta.groups,
    versions: versions.versions,
    submissions: versions.submissions,
    requests: front.requests,
    violations: front.violations,
    tokens: fake.tokens.size,
  };
}

const done = { ok: true };
const commands = {
  state,
  app: (app) => fake.addApp(app),
  group: (group) => fake.builds.addGroup(group),
  version: (version) => fake.versions.add(version),
  build: (build) => fake.builds.add(build),
  upload: ({ app, version, number, file }) => {
    const attributes = { cfBundleShortVersionString: version, cfBundleVersion: number, platform: "IOS" };
    const { data } = fake.builds.openUpload({ attributes, relationships: { app: { data: { id: app } } } });
    const of = { buildUpload: { data } };
    if (file) fake.builds.reserveFile({ attributes: { fileName: file, fileSize: 10 }, relationships: of });
    return { id: data.id };
  },
  // Changes a resource as somebody in App Store Connect, or Apple, would.
  change: ({ list, id, to }) => {
    const all = { versions: fake.versions.versions, submissions: fake.versions.submissions, builds: fake.builds.builds };
    const one = all[list].find((one) => one.id === id);
    if (!one) throw new Error(`there is no ${id} in ${list}`);
    return Object.assign(one, to);
  },
  settings: ({ do: _, ...settings }) => Object.assign(fake.settings, settings),
  role: ({ keyId, ...change }) => Object.assign(fake.keys.find((key) => key.keyId === keyId), change),
  day: () => fake.versions.nextDay() ?? done,
  fail: (fault) => front.fail(fault) ?? done,
  heal: () => front.heal() ?? done,
};

for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => end());
if (!existsSync(modules)) {
  process.stderr.write("apple.mjs: `npm ci --ignore-scripts` has not been run here\n");
  end(1);
}
const input = createInterface({ input: process.stdin });
input.on("close", () => end());
const lines = input[Symbol.asyncIterator]();
const config = JSON.parse((await lines.next()).value);
const front = new Front();
front.address = await front.listen();
const fake = new Fake(config, front);
const address = await fake.listen();
const proxy = await startProxy(address).catch((error) => {
  process.stderr.write(`apple.mjs: ${error.message}\n`);
  return end(1);
});
front.through(proxy, address);
console.log(JSON.stringify({ api: front.address }));

for await (const line of lines) {
  const command = JSON.parse(line);
  const answer = async () => commands[command.do](command);
  console.log(JSON.stringify(await answer().catch((error) => ({ error: String(error.cause ?? error) }))));
}
