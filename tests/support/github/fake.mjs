// A stateful fake of the part of GitHub that `emulate` cannot be seeded with: workflows and their runs.
// What it does not know goes on to `emulate`, which also verifies the keys of Apps and mints tokens.
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { Bodies, shaOf, time } from "./bodies.mjs";
import { MARK, read, send } from "./front.mjs";

const DOCS = "https://docs.github.com/rest";
// Real ids of runs do not fit into 32 bits.
const FIRST_RUN = 17_000_000_001;
const NOT_ACCESSIBLE = "Resource not accessible by integration";
const SUSPENDED = "This installation has been suspended";
const EXPIRATION = "'Expiration time' claim ('exp')";
const EXPIRES = "representing the future time at which the assertion expires";
const ISSUED = "'Issued at' claim ('iat')";
const WAS_ISSUED = "representing the time that the assertion was issued";
const RANK = { read: 1, write: 2 };

class Refusal extends Error {
  constructor(status, message, documentation = DOCS) {
    super(message);
    this.answer = json(status, { message, documentation_url: documentation, status: String(status) });
  }
}

const json = (status, body, headers = {}) => ({
  status,
  headers: { "content-type": "application/json; charset=utf-8", ...headers },
  body: JSON.stringify(body),
});

const inRepository = (path) => new RegExp(`^/repos/([^/]+)/([^/]+)${path}$`);
const bearer = ({ authorization = "" }) => authorization.match(/^(?:bearer|token)\s+(\S+)$/i)?.[1];

/// What GitHub says of the times in the token of an App; `emulate` looks at signature and expiry only.
function checkTimes(token) {
  let claims;
  try {
    claims = JSON.parse(Buffer.from(token.split(".")[1], "base64url"));
  } catch {
    throw new Refusal(401, "A JSON web token could not be decoded");
  }
  const now = Date.now() / 1000;
  if (!Number.isInteger(claims.exp)) throw new Refusal(401, `${EXPIRATION} must be a numeric value ${EXPIRES}`);
  if (claims.exp > now + 600) throw new Refusal(401, `${EXPIRATION} is too far in the future`);
  const issued = Number.isInteger(claims.iat) && claims.iat <= now + 5;
  if (!issued) throw new Refusal(401, `${ISSUED} must be an Integer ${WAS_ISSUED}`);
}

/// Since 2026 tokens of installations are `ghs_<App>_<JWT>` of some 520 characters, with dots and underscores.
function longToken(appId, seed) {
  const part = (name, bytes) =>
    Buffer.concat([Buffer.from(`{"${name}":"`), hash(name + seed, bytes)]).toString("base64url");
  return `ghs_${appId}_${part("alg", 20)}.${part("jti", 100)}.${part("sig", 210)}`;
}
const hash = (text, bytes) => createHash("shake256", { outputLength: bytes }).update(text).digest();

const COMPARED = {
  ">=": (a, b) => a >= b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  "<": (a, b) => a < b,
};

/// GitHub's search syntax of dates: `>=T`, `>T`, `<=T`, `<T`, `A..B` or a day.
function matcherOfDates(text) {
  const at = (value) => (value === "*" ? NaN : Date.parse(value));
  const [, from, to] = text.match(/^(.+)\.\.(.+)$/) ?? [];
  if (from) return (time) => !(time < at(from)) && !(time > at(to));
  const [, sign, value] = text.match(/^(>=|<=|>|<)?(.+)$/);
  if (sign) return (time) => COMPARED[sign](time, at(value));
  return (time) => new Date(time).toISOString().startsWith(value.replace(/(\.000)?Z$/, ""));
}

export class Fake {
  runs = [];
  refs = ["main"];
  files = new Map();
  workflows = new Map();
  suspendedAt = null;
  #tokens = new Map();
  #spent = 0;
  #lastWorkflow = 160_000_000;

  constructor(config) {
    this.config = config;
    this.bodies = new Bodies(config);
    this.workflow({
      file: "svc-build.yml",
      inputs: { app_id: { required: true }, platform: { required: true }, profile: {} },
    });
  }

  async listen() {
    const server = createServer(async (request, response) => {
      const answer = await this.#answer(request).catch((error) => {
        if (error instanceof Refusal) return error.answer;
        process.stderr.write(`${error.stack}\n`);
        return json(500, { message: "Server Error" });
      });
      const headers = { ...answer.headers, ...this.#limits(answer.status), [MARK]: "fake" };
      const bare = answer.status === 204 || answer.status === 304;
      response.writeHead(answer.status, headers).end(bare ? undefined : answer.body);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${server.address().port}`;
  }

  // An answer 304 costs nothing of the limit.
  #limits(status) {
    if (status !== 304) this.#spent += 1;
    return {
      "x-github-request-id": `FAKE:${this.#spent}`,
      "x-ratelimit-limit": "5000",
      "x-ratelimit-remaining": String(Math.max(0, 5000 - this.#spent)),
      "x-ratelimit-reset": String(Math.ceil(Date.now() / 3_600_000) * 3600),
    };
  }

  /// Adds, replaces or removes a workflow; `trigger: false` is one that cannot be dispatched.
  workflow({ file, inputs = {}, runName, trigger = true, remove }) {
    const id = this.workflows.get(file)?.id ?? (this.#lastWorkflow += 1);
    if (remove) this.workflows.delete(file);
    else this.workflows.set(file, { id, file, inputs, runName, trigger });
  }

  run(id) {
    const run = this.runs.find((run) => run.id === id);
    if (!run) throw new Error(`there is no run ${id}`);
    return run;
  }

  change(run, change) {
    Object.assign(run, change, { updated_at: time(), version: run.version + 1 });
  }

  suspend(suspended) {
    this.suspendedAt = suspended ? time() : null;
  }

  /// No token that was minted until now is worth anything any more.
  revoke() {
    this.#tokens.clear();
  }

  async #answer(request) {
    const body = await read(request);
    const { pathname, searchParams: query } = new URL(request.url, "http://fake");
    const { method, headers } = request;
    const call = { method, url: request.url, headers, body, query };
    for (const [verb, route, serve] of this.#routes) {
      const [matches, ...parts] = pathname.match(route) ?? [];
      if (matches && verb === method) return serve(call, ...parts.map(decodeURIComponent));
    }
    return this.#other(call);
  }

  #routes = [
    ["GET", /^\/app$/, (call) => this.#app(call)],
    ["POST", /^\/app\/installations\/(\d+)\/access_tokens$/, (call, id) => this.#mint(call, Number(id))],
    ["GET", /^\/app\/installations\/\d+$/, (call) => this.#installation(call)],
    ["GET", inRepository(""), (...of) => this.#repository(...of)],
    ["GET", inRepository("/installation"), (call) => this.#installation(call)],
    ["GET", inRepository("/contents/(.+)"), (...of) => this.#contents(...of)],
    ["POST", inRepository("/actions/workflows/([^/]+)/dispatches"), (...of) => this.#dispatch(...of)],
    ["GET", inRepository("/actions/workflows/([^/]+)/runs"), (...of) => this.#list(...of)],
    ["GET", inRepository("/actions/runs/(\\d+)"), (...of) => this.#get(...of)],
    ["GET", inRepository("/actions/runs/(\\d+)/jobs"), (...of) => this.#jobs(...of)],
    ["POST", inRepository("/actions/runs/(\\d+)/(cancel|force-cancel)"), (...of) => this.#cancel(...of)],
  ];

  async #passOn({ method, url, headers, body }, replaced = body) {
    const token = this.#tokens.get(bearer(headers));
    const authorized = token ? { ...headers, authorization: `Bearer ${token.ofEmulate}` } : headers;
    return send(this.config.emulate, { method, url, headers: authorized, body: replaced });
  }

  /// What only `emulate` knows; its own list of everybody's tokens is none of a client's business.
  #other(call) {
    const token = bearer(call.headers);
    const known = token?.startsWith("eyJ") || this.#tokens.has(token);
    if (!known) throw new Refusal(401, token ? "Bad credentials" : "Requires authentication");
    return this.#passOn(call);
  }

  // The description requires an owner with all its fields, `emulate` says null.
  async #app(call) {
    checkTimes(bearer(call.headers) ?? "");
    const answer = await this.#passOn(call);
    if (answer.status !== 200) return answer;
    return json(200, { ...JSON.parse(answer.body), owner: this.bodies.owner() });
  }

  async #mint(call, id) {
    checkTimes(bearer(call.headers) ?? "");
    const answer = await this.#passOn(call, this.#withIdsOfEmulate(call.body));
    if (answer.status !== 201) {
      const { message } = JSON.parse(answer.body);
      throw new Refusal(answer.status, message);
    }
    if (this.suspendedAt && id === this.config.installationId) throw new Refusal(403, SUSPENDED);
    const minted = JSON.parse(answer.body);
    // The description requires of each repository all its links, `emulate` gives a name and its own id.
    minted.repositories &&= minted.repositories.map(({ name }) => this.bodies.fullRepository(name));
    const names = minted.repositories?.map(({ name }) => name);
    const token = longToken(this.config.appId, minted.token);
    this.#tokens.set(token, { ...minted, names, ofEmulate: minted.token });
    return json(201, { ...minted, token, expires_at: time(new Date(minted.expires_at)) });
  }

  // An id of nobody's becomes 0, which `emulate` does not know either.
  #withIdsOfEmulate(body) {
    if (!body.length) return body;
    const asked = JSON.parse(body);
    const names = Object.keys(this.config.repositories);
    const translated = (id) => names.findIndex((name) => this.config.repositories[name] === id) + 1;
    if (asked.repository_ids) asked.repository_ids = asked.repository_ids.map(translated);
    return Buffer.from(JSON.stringify(asked));
  }

  async #repository(call, owner, name) {
    this.#authorize(call, owner, name);
    const answer = await this.#passOn(call);
    if (answer.status !== 200) return answer;
    const own = this.bodies.fullRepository(name);
    return json(200, { ...own, ...JSON.parse(answer.body), id: own.id, owner: own.owner });
  }

  #contents(call, owner, name, path) {
    this.#authorize(call, owner, name, "contents", "read");
    const text = this.files.get(path);
    if (text === undefined) throw new Refusal(404, "Not Found");
    return tagged(call, this.bodies.file(name, path, text), 1);
  }

  // `emulate` tells anybody about an installation, so that the key is verified with another question first.
  async #installation(call) {
    checkTimes(bearer(call.headers) ?? "");
    const known = await this.#passOn({ ...call, url: "/app" });
    if (known.status !== 200) return known;
    const answer = await this.#passOn(call);
    if (answer.status !== 200) return answer;
    const missing = { ...this.bodies.installation(this.suspendedAt), account: this.bodies.owner() };
    return json(200, { ...JSON.parse(answer.body), ...missing });
  }

  /// Refuses whoever has no minted token for this repository with this permission.
  #authorize({ headers }, owner, name, permission, level) {
    const given = bearer(headers);
    if (!given) throw new Refusal(401, "Requires authentication");
    const token = this.#tokens.get(given);
    if (!token || Date.parse(token.expires_at) < Date.now()) throw new Refusal(401, "Bad credentials");
    if (this.suspendedAt) throw new Refusal(403, SUSPENDED);
    const known = owner === this.config.owner_login && this.config.repositories[name];
    if (!known) throw new Refusal(404, "Not Found");
    if (token.names && !token.names.includes(name)) throw new Refusal(403, NOT_ACCESSIBLE);
    if (!permission) return;
    const has = RANK[token.permissions[permission]] ?? 0;
    if (has < RANK[level]) throw new Refusal(403, NOT_ACCESSIBLE);
  }

  #known(file) {
    const named = (one) => one.file === file || String(one.id) === file;
    const known = [...this.workflows.values()].find(named);
    if (!known) throw new Refusal(404, "Not Found");
    return known;
  }

  #dispatch(call, owner, name, file) {
    this.#authorize(call, owner, name, "actions", "write");
    const { id, file: known, inputs, runName, trigger } = this.#known(file);
    const asked = JSON.parse(call.body);
    if (!trigger) throw new Refusal(422, "Workflow does not have 'workflow_dispatch' trigger");
    const ref = asked.ref.replace(/^refs\/(heads|tags)\//, "");
    if (!this.refs.includes(ref)) throw new Refusal(422, `No ref found for: ${asked.ref}`);
    const run = this.#create(name, ref, id, known, checkedInputs(inputs, asked.inputs ?? {}));
    if (runName) run.display_title = titled(runName, run.inputs);
    // From this version of the API on there is no other answer.
    const details = asked.return_run_details || call.headers["x-github-api-version"] === "2026-03-10";
    if (!details) return { status: 204, headers: {} };
    const { url, html_url } = this.bodies.run(run);
    return json(200, { workflow_run_id: run.id, run_url: url, html_url });
  }

  #create(repository, ref, workflowId, file, inputs) {
    const number = this.runs.length;
    const id = FIRST_RUN + number;
    const run = {
      id,
      repository,
      file,
      inputs,
      ref,
      name: file.replace(/\.ya?ml$/, ""),
      display_title: file.replace(/\.ya?ml$/, ""),
      path: `.github/workflows/${file}`,
      workflow_id: workflowId,
      run_number: number + 1,
      event: "workflow_dispatch",
      status: "queued",
      conclusion: null,
      head_branch: ref,
      head_sha: shaOf(`${repository}@${ref}`),
      html_url: `https://github.com/${this.config.owner_login}/${repository}/actions/runs/${id}`,
      created_at: time(),
      updated_at: time(),
      jobs: null,
      version: 1,
    };
    this.runs.push(run);
    return run;
  }

  #list(call, owner, name, file) {
    this.#authorize(call, owner, name, "actions", "read");
    const { file: known } = this.#known(file);
    const { query } = call;
    const wanted = (name) => query.get(name);
    const inTime = wanted("created") ? matcherOfDates(wanted("created")) : () => true;
    const found = this.runs
      .filter((run) => run.repository === name && run.file === known)
      .filter((run) => !wanted("event") || run.event === wanted("event"))
      .filter((run) => !wanted("branch") || run.head_branch === wanted("branch"))
      .filter((run) => !wanted("status") || [run.status, run.conclusion].includes(wanted("status")))
      .filter((run) => inTime(Date.parse(run.created_at)))
      .reverse();
    const size = Math.min(100, Number(wanted("per_page") ?? 30));
    const first = (Number(wanted("page") ?? 1) - 1) * size;
    const workflow_runs = found.slice(first, first + size).map((run) => this.bodies.run(run));
    const version = found.map((run) => run.version);
    return tagged(call, { total_count: found.length, workflow_runs }, version);
  }

  #find(call, owner, name, id, level = "read") {
    this.#authorize(call, owner, name, "actions", level);
    const run = this.runs.find((run) => run.id === Number(id) && run.repository === name);
    if (!run) throw new Refusal(404, "Not Found");
    return run;
  }

  #get(call, owner, name, id) {
    const run = this.#find(call, owner, name, id);
    return tagged(call, this.bodies.run(run), run.version);
  }

  #jobs(call, owner, name, id) {
    const run = this.#find(call, owner, name, id);
    const jobs = (run.jobs ?? [{}]).map((job, index) => this.bodies.job(run, job, index));
    return tagged(call, { total_count: jobs.length, jobs }, run.version);
  }

  /// A run with `ignoreCancel` is one whose steps say `always()`: only force ends it.
  #cancel(call, owner, name, id, how) {
    const run = this.#find(call, owner, name, id, "write");
    if (run.status === "completed") {
      throw new Refusal(409, "Cannot cancel a workflow run that is completed.");
    }
    if (how === "force-cancel" || !run.ignoreCancel) {
      this.change(run, { status: "completed", conclusion: "cancelled" });
    }
    return json(202, {});
  }
}

/// The title of a run by the `run-name` of its workflow, such as `build ${{ inputs.app_id }}`.
const titled = (runName, inputs) =>
  runName.replace(/\$\{\{ *inputs\.(\w+) *\}\}/g, (_, input) => inputs[input] ?? "");

/// The inputs of a run with the defaults of its workflow, refused in GitHub's words.
function checkedInputs(declared, given) {
  const unexpected = Object.keys(given).filter((name) => !Object.hasOwn(declared, name));
  if (unexpected.length) throw new Refusal(422, `Unexpected inputs provided: ${JSON.stringify(unexpected)}`);
  const inputs = {};
  for (const [name, { required, default: usual, options }] of Object.entries(declared)) {
    const value = given[name] ?? usual;
    const absent = value === undefined || value === "";
    if (required && absent) throw new Refusal(422, `Required input '${name}' not provided`);
    if (value === undefined) continue;
    if (options && !options.includes(value)) {
      throw new Refusal(422, `Provided value '${value}' for input '${name}' not in the list of allowed values`);
    }
    inputs[name] = value;
  }
  return inputs;
}

/// An answer with an ETag, or 304 for a client that has it already. The times in `body` are of whole seconds,
/// so that two changes within one are told apart by `version`.
function tagged({ headers }, body, version) {
  const etag = `W/"${shaOf(JSON.stringify([body, version]))}"`;
  const asked = (headers["if-none-match"] ?? "").split(",").map((tag) => tag.trim());
  const same = [etag, etag.slice(2)].some((tag) => asked.includes(tag));
  if (same) return { status: 304, headers: { etag } };
  return json(200, body, { etag, "cache-control": "private, max-age=60, s-maxage=60" });
}
