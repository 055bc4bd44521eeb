// A stateful fake of App Store Connect. It enforces what Apple's description does not say: tokens, roles, and
// the rules of uploads, TestFlight and reviews.
import { createPublicKey, verify } from "node:crypto";
import { createServer } from "node:http";
import { MARK, read } from "../github/front.mjs";
import { Builds } from "./builds.mjs";
import { filter, many, notFound, passes, refuse, Refusal, resource } from "./documents.mjs";
import { Versions } from "./versions.mjs";

const LONGEST_LIFE = 20 * 60;
const TESTS = ["ADMIN", "APP_MANAGER", "DEVELOPER"];
const RELEASES = ["ADMIN", "APP_MANAGER"];
// How Apple treats an app, unless a test says otherwise.
const SETTINGS = {
  partSize: 400,
  processingLooks: 1,
  deliveryLooks: 1,
  cancelLooks: 2,
  isReviewing: true,
  verdict: "APPROVED",
  betaVerdict: "APPROVED",
  processed: "VALID",
  uploadErrors: [],
  fileErrors: [],
  lacks: [],
  expiringPlaces: 0,
  repeatsOperations: true,
  saysEncryption: false,
};

export class Fake {
  apps = [];
  hasAgreements = true;
  tokens = new Set();
  #last = 6_700_000_000;

  /// `queries`: the parameters that the description has, because the proxy lets others pass.
  constructor({ keys }, front, queries) {
    this.keys = keys;
    this.queries = queries;
    this.front = front.address;
    this.violate = (...details) => front.violate(...details);
    this.builds = new Builds(this);
    this.versions = new Versions(this);
  }

  id(kind) {
    this.#last += 1;
    return `${kind}-${this.#last}`;
  }

  app(id) {
    return this.apps.find((app) => app.id === id) ?? notFound("apps", id);
  }

  settings(app) {
    return this.app(app).settings;
  }

  addApp({ bundleId, name, primaryLocale = "en-US" }) {
    this.#last += 1;
    this.apps.push({ id: String(this.#last), bundleId, name, primaryLocale, settings: { ...SETTINGS } });
    return this.apps.at(-1);
  }

  async listen() {
    const server = createServer(async (request, response) => {
      const answer = await this.#answer(request).catch((error) => {
        if (error instanceof Refusal) return error.answer;
        process.stderr.write(`${error.stack}\n`);
        return { status: 500, body: { errors: [] } };
      });
      const headers = { [MARK]: "fake", "x-rate-limit": "user-hour-lim:3600;user-hour-rem:3500;" };
      if (answer.body) headers["content-type"] = "application/json";
      response.writeHead(answer.status, headers).end(answer.body && JSON.stringify(answer.body));
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${server.address().port}`;
  }

  async #answer(request) {
    const body = await read(request);
    const { pathname, searchParams: query } = new URL(request.url, "http://fake");
    const { method, headers } = request;
    if (pathname.startsWith("/storage/")) {
      const { status, violation } = this.builds.put(pathname, headers, body);
      if (violation) this.violate(method, pathname, status, violation);
      return { status };
    }
    const described = this.queries.find(({ verb, path }) => verb === method && path.test(pathname));
    const unknown = [...query.keys()].filter((name) => !described?.names.includes(name));
    if (unknown.length) this.violate(method, request.url, 400, `unknown parameters: ${unknown}`);
    const role = this.#authenticate(headers.authorization);
    if (!this.hasAgreements) {
      const detail = "This request requires an in-effect agreement that has not been signed or has expired.";
      refuse(403, "FORBIDDEN.REQUIRED_AGREEMENTS_MISSING_OR_EXPIRED", detail);
    }
    const data = body.length ? JSON.parse(body).data : undefined;
    for (const [verb, path, roles, status, serve] of this.#routes) {
      const [matches, ...parts] = pathname.match(new RegExp(`^/v1/${path}$`)) ?? [];
      if (!matches || verb !== method) continue;
      if (roles && !roles.includes(role)) {
        refuse(403, "FORBIDDEN_ERROR", "The API key in use does not allow this request");
      }
      return { status, body: serve({ query, data }, ...parts) };
    }
    return refuse(404, "PATH_ERROR", `${method} ${pathname}`);
  }

  /// The role of the key that signed the token.
  #authenticate(authorization = "") {
    const unauthorized = (why) => {
      const detail = `Provide a properly configured and signed bearer token, and make sure that it has not expired. (${why})`;
      refuse(401, "NOT_AUTHORIZED", detail);
    };
    const [, token] = authorization.match(/^Bearer (\S+)$/) ?? [];
    const parts = token?.split(".") ?? [];
    if (parts.length !== 3) unauthorized("no token");
    const [header, claims] = parts.slice(0, 2).map((part) => JSON.parse(Buffer.from(part, "base64url")));
    const key = this.keys.find(({ keyId, isRevoked }) => keyId === header.kid && !isRevoked);
    if (!key || header.alg !== "ES256" || header.typ !== "JWT") unauthorized("header");
    const signed = Buffer.from(parts.slice(0, 2).join("."));
    const options = { key: createPublicKey(key.publicKey), dsaEncoding: "ieee-p1363" };
    if (!verify("sha256", signed, options, Buffer.from(parts[2], "base64url"))) unauthorized("signature");
    const isOfTeam = key.issuerId && claims.iss === key.issuerId && claims.sub === undefined;
    const isOfPerson = !key.issuerId && claims.sub === "user" && claims.iss === undefined;
    if (!isOfTeam && !isOfPerson) unauthorized("issuer");
    if (claims.aud !== "appstoreconnect-v1") unauthorized("audience");
    const now = Date.now() / 1000;
    const lives = claims.exp - claims.iat;
    if (!(lives > 0 && lives <= LONGEST_LIFE && claims.exp > now && claims.iat <= now + 5)) unauthorized("times");
    this.tokens.add(token);
    return key.role;
  }

  #list({ query }) {
    const found = this.apps.filter(({ bundleId }) => passes(filter(query, "bundleId"), bundleId));
    const documents = found.map(({ id, settings, ...attributes }) => resource("apps", id, { ...attributes, sku: id }));
    return many(documents, query);
  }

  // Verb, path, roles that may, status of success, and what is done.
  #routes = [
    ["GET", "apps", null, 200, (call) => this.#list(call)],
    ["GET", "apps/([^/]+)/buildUploads", null, 200, ({ query }, id) => this.builds.uploadsOf(id, query)],
    ["GET", "apps/([^/]+)/appStoreVersions", null, 200, ({ query }, id) => this.versions.list(id, query)],
    ["POST", "buildUploads", TESTS, 201, ({ data }) => this.builds.openUpload(data)],
    ["GET", "buildUploads/([^/]+)", null, 200, ({ query }, id) => this.builds.upload(id, query)],
    ["GET", "buildUploads/([^/]+)/buildUploadFiles", null, 200, ({ query }, id) => this.builds.filesOf(id, query)],
    ["POST", "buildUploadFiles", TESTS, 201, ({ data }) => this.builds.reserveFile(data)],
    ["GET", "buildUploadFiles/([^/]+)", null, 200, (_, id) => this.builds.file(id)],
    ["PATCH", "buildUploadFiles/([^/]+)", TESTS, 200, ({ data }, id) => this.builds.commitFile(id, data)],
    ["GET", "builds", null, 200, ({ query }) => this.builds.list(query)],
    ["GET", "builds/([^/]+)", null, 200, ({ query }, id) => this.builds.build(id, query)],
    ["PATCH", "builds/([^/]+)", TESTS, 200, ({ data }, id) => this.builds.changeBuild(id, data)],
    ["GET", "builds/([^/]+)/betaBuildLocalizations", null, 200, ({ query }, id) => this.builds.notesOf(id, query)],
    ["POST", "betaBuildLocalizations", TESTS, 201, ({ data }) => this.builds.addNote(data)],
    ["PATCH", "betaBuildLocalizations/([^/]+)", TESTS, 200, ({ data }, id) => this.builds.changeNote(id, data)],
    ["PATCH", "buildBetaDetails/([^/]+)", TESTS, 200, ({ data }, id) => this.builds.changeBetaDetail(id, data)],
    ["GET", "betaGroups", null, 200, ({ query }) => this.builds.groupsOf(query)],
    ["POST", "betaGroups/([^/]+)/relationships/builds", TESTS, 204, ({ data }, id) => this.builds.offer(id, data)],
    ["GET", "betaAppReviewSubmissions", null, 200, ({ query }) => this.builds.reviewsOf(query)],
    ["POST", "betaAppReviewSubmissions", TESTS, 201, ({ data }) => this.builds.submitBeta(data)],
    ["POST", "appStoreVersions", RELEASES, 201, ({ data }) => this.versions.create(data)],
    ["GET", "appStoreVersions/([^/]+)", null, 200, ({ query }, id) => this.versions.get(id, query)],
    ["PATCH", "appStoreVersions/([^/]+)", RELEASES, 200, ({ data }, id) => this.versions.change(id, data)],
    ["PATCH", "appStoreVersions/([^/]+)/relationships/build", RELEASES, 204, ({ data }, id) => this.versions.attach(id, data)],
    ["GET", "appStoreVersions/([^/]+)/appStoreVersionLocalizations", null, 200, ({ query }, id) => this.versions.localizationsOf(id, query)],
    ["PATCH", "appStoreVersionLocalizations/([^/]+)", RELEASES, 200, ({ data }, id) => this.versions.changeLocalization(id, data)],
    ["POST", "appStoreVersionPhasedReleases", RELEASES, 201, ({ data }) => this.versions.addPhased(data)],
    ["PATCH", "appStoreVersionPhasedReleases/([^/]+)", RELEASES, 200, ({ data }, id) => this.versions.changePhased(id, data)],
    ["DELETE", "appStoreVersionPhasedReleases/([^/]+)", RELEASES, 204, (_, id) => this.versions.removePhased(id)],
    ["GET", "reviewSubmissions", null, 200, ({ query }) => this.versions.submissionsOf(query)],
    ["POST", "reviewSubmissions", RELEASES, 201, ({ data }) => this.versions.createSubmission(data)],
    ["GET", "reviewSubmissions/([^/]+)", null, 200, (_, id) => this.versions.getSubmission(id)],
    ["PATCH", "reviewSubmissions/([^/]+)", RELEASES, 200, ({ data }, id) => this.versions.changeSubmission(id, data)],
    ["GET", "reviewSubmissions/([^/]+)/items", null, 200, ({ query }, id) => this.versions.itemsOf(id, query)],
    ["POST", "reviewSubmissionItems", RELEASES, 201, ({ data }) => this.versions.addItem(data)],
    ["DELETE", "reviewSubmissionItems/([^/]+)", RELEASES, 204, (_, id) => this.versions.removeItem(id)],
    ["POST", "appStoreVersionReleaseRequests", RELEASES, 201, ({ data }) => this.versions.requestRelease(data)],
  ];
}
