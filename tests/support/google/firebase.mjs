// A stateful Firebase App Distribution: projects with apps, groups, releases and uploads that take a while.
import { Refusal, json, random, sha } from "./answers.mjs";

const EMAIL = /^[^@\s]+@[^@\s]+\.[^@\s]+$/;
const AT = "type.googleapis.com/google.firebase.appdistro.v1.";
const bad = (message) => new Refusal(400, "INVALID_ARGUMENT", message);
const missing = (message = "Requested entity was not found.") => new Refusal(404, "NOT_FOUND", message);

export class Firebase {
  apps = new Map();
  /// How often an upload is asked about before it is done.
  delay = 1;
  #operations = new Map();
  #last = 0;

  /// Adds an app, or changes what it is like.
  ///
  /// id: such as `1:123:android:abc`. groups: aliases of its project. aab: the state of app bundles.
  /// members: who may see it; all by default. broken: a message with which every upload ends.
  app({ id, ...like }) {
    const name = `projects/${id.split(":")[1]}/apps/${id}`;
    const app = this.apps.get(name) ?? {
      name, groups: [], aab: "INTEGRATED", members: null, broken: null, releases: [], uploads: [], distributions: [],
      deleted: [],
    };
    this.apps.set(name, Object.assign(app, like));
  }

  answer(account, { method, path, query, headers, body }) {
    const [, upload, rest] = path.match(/^(\/upload)?\/v1\/(.+)$/) ?? [];
    const [, project, group] = rest?.match(/^(projects\/\d+)\/groups(?:\/([^/:]+))?$/) ?? [];
    if (project && method === "GET") return this.#groups(account, project, group);
    const [, name, inside = ""] = decodeURIComponent(rest).match(/^(projects\/\d+\/apps\/[^/]+)\/?(.*)$/) ?? [];
    const app = this.apps.get(name);
    if (!app) throw missing();
    this.#permit(app, account);
    const [, releaseId, verb] = inside.match(/^releases\/([^/:]+)(?::(\w+))?$/) ?? [];
    const release = app.releases.find((it) => it.name === `${name}/releases/${releaseId}`);
    if (releaseId && !release) throw missing();
    switch (`${method} ${release ? `release:${verb ?? ""}` : inside.replace(/operations\/.*/, "operation")}`) {
      case "GET aabInfo":
        return json(200, { name: `${name}/aabInfo`, integrationState: app.aab });
      case "POST releases:upload":
        if (!upload) throw missing();
        return this.#upload(app, headers, body);
      case "GET releases/-/operation":
        return this.#operation(`${name}/${inside}`);
      case "GET releases":
        return json(200, { releases: app.releases.map(shown) });
      case "GET release:":
        return json(200, shown(release));
      case "PATCH release:": {
        if (query.get("updateMask") !== "release_notes.text") throw bad("The field mask is invalid.");
        release.releaseNotes = { text: JSON.parse(body).releaseNotes?.text ?? "" };
        return json(200, shown(release));
      }
      case "POST release:distribute":
        return this.#distribute(app, release, JSON.parse(body));
      case "POST releases:batchDelete":
        return this.#delete(app, JSON.parse(body));
      default:
        throw missing("The requested URL was not found.");
    }
  }

  #permit(app, account) {
    if (app.members && !app.members.includes(account)) {
      throw new Refusal(403, "PERMISSION_DENIED", "The caller does not have permission");
    }
  }

  #groups(account, project, alias) {
    const apps = [...this.apps.values()].filter(({ name }) => name.startsWith(`${project}/`));
    if (!apps.length) throw missing();
    apps.forEach((app) => this.#permit(app, account));
    const all = [...new Set(apps.flatMap(({ groups }) => groups))];
    const of = (name) => ({ name: `${project}/groups/${name}`, displayName: name, testerCount: 1 });
    if (!alias) return json(200, { groups: all.map(of) });
    if (!all.includes(alias)) throw missing();
    return json(200, of(alias));
  }

  #upload(app, headers, bytes) {
    if (!headers["x-goog-upload-file-name"]) throw bad("The file has no name.");
    const fileName = decodeURIComponent(headers["x-goog-upload-file-name"]);
    if (!bytes.length) throw bad("The file is empty.");
    const sha256 = sha("sha256", bytes);
    app.uploads.push({ sha256, fileName });
    const name = `${app.name}/releases/-/operations/${random(12)}`;
    const operation = { name, left: this.delay, result: () => this.#receive(app, bytes, sha256) };
    this.#operations.set(name, operation);
    return json(200, { name });
  }

  #receive(app, bytes, sha256) {
    if (app.broken) return { error: { code: 3, message: app.broken } };
    let release = app.releases.find((it) => it.sha256 === sha256);
    const result = release ? "RELEASE_UNMODIFIED" : "RELEASE_CREATED";
    if (!release) {
      const name = `${app.name}/releases/${sha("sha1", `${sha256}${(this.#last += 1)}`).slice(0, 16)}`;
      release = { name, sha256, groups: [], testers: [], at: new Date().toISOString() };
      app.releases.push(release);
    }
    const response = { "@type": `${AT}UploadReleaseResponse`, result, release: shown(release) };
    return { response };
  }

  #operation(name) {
    const operation = this.#operations.get(name);
    if (!operation) throw missing();
    if (operation.left > 0) {
      operation.left -= 1;
      return json(200, { name, metadata: { "@type": `${AT}UploadReleaseMetadata` } });
    }
    operation.end ??= operation.result();
    return json(200, { name, done: true, ...operation.end });
  }

  #distribute(app, release, { groupAliases = [], testerEmails = [] }) {
    if (groupAliases.length + testerEmails.length > 999) throw bad("Too many testers and groups.");
    if (groupAliases.some((alias) => !app.groups.includes(alias))) throw bad("Request contains an invalid argument: groups.");
    if (testerEmails.some((email) => !EMAIL.test(email))) {
      throw new Refusal(400, "FAILED_PRECONDITION", "Precondition check failed: testers.");
    }
    release.groups = [...new Set([...release.groups, ...groupAliases])];
    release.testers = [...new Set([...release.testers, ...testerEmails])];
    app.distributions.push({ release: release.name, groupAliases, testerEmails });
    return json(200, {});
  }

  #delete(app, { names = [] }) {
    if (!names.length || names.length > 100) throw bad("1 to 100 names are needed.");
    if (names.some((name) => !app.releases.some((it) => it.name === name))) throw missing();
    app.releases = app.releases.filter(({ name }) => !names.includes(name));
    app.deleted.push(...names);
    return json(200, {});
  }
}

/// A release as the API shows it.
function shown({ name, releaseNotes, at }) {
  const id = name.split("/").at(-1);
  const console = "https://console.firebase.google.com/project/acme/appdistribution/app";
  const release = { name, displayVersion: "1.4.2", buildVersion: "42", createTime: at, binaryType: "APK" };
  const links = {
    firebaseConsoleUri: `${console}/releases/${id}`,
    testingUri: `https://appdistribution.firebase.google.com/testerapps/releases/${id}`,
  };
  return releaseNotes ? { ...release, ...links, releaseNotes } : { ...release, ...links };
}
