// An App Store Connect for tests: our fake of it, before it a proxy that checks every request and every answer
// against Apple's description of the API.
//
// The first line of standard input is the configuration: `{"keys": [{"keyId", "issuerId", "publicKey", "role"}]}`,
// with `"issuerId": null` for the key of a person. Prints one line with the address, then answers each command on
// standard input with a line. Ends when standard input does.
import { createInterface } from "node:readline";
import { description, queries } from "./description.mjs";
import { Fake } from "./fake.mjs";
import { Front } from "./front.mjs";
import { startProxy } from "./proxy.mjs";

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
  settings: ({ do: _, app, ...settings }) => Object.assign(fake.settings(app), settings),
  agreements: ({ are }) => ((fake.hasAgreements = are), done),
  role: ({ keyId, ...change }) => Object.assign(fake.keys.find((key) => key.keyId === keyId), change),
  day: ({ app }) => fake.versions.nextDay(app) ?? done,
  fail: (fault) => front.fail(fault) ?? done,
  heal: () => front.heal() ?? done,
};

const input = createInterface({ input: process.stdin });
input.on("close", () => process.exit());
const lines = input[Symbol.asyncIterator]();
const config = JSON.parse((await lines.next()).value);
const front = new Front();
front.address = await front.listen();
const path = description();
const fake = new Fake(config, front, queries(path));
const address = await fake.listen();
front.through(await startProxy(path, address), address);
console.log(JSON.stringify({ api: front.address }));

for await (const line of lines) {
  const command = JSON.parse(line);
  const answer = async () => commands[command.do](command);
  console.log(JSON.stringify(await answer().catch((error) => ({ error: String(error.cause ?? error) }))));
}
